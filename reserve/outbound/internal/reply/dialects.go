package reply

import (
	"net/http"
	"strings"
	"time"
)

// A Dialect is how a family of servers says how much is left, and until when.
type Dialect struct {
	// Name is for people: "GitHub".
	Name string
	// Limit, Remaining and Reset are the names of headers. A * in them stands for each of the names
	// in Of. Without Limit a bucket's rate is not known.
	Limit, Remaining, Reset string
	// Of says what the limits count, as in the Name of a limit: "requests", "tokens". Empty: it is
	// not said.
	Of []string
	// Bucket says that Reset is when the bucket will be full again, so that it refills at (limit -
	// remaining) / reset. Otherwise Reset is the end of a window: if nothing remains, nothing is
	// allowed before.
	Bucket bool
	// Fill and Interval are the names of headers that say how many permits a bucket gets in how
	// many seconds.
	Fill, Interval string
	// Reason is the name of a header that says which of several limits has refused: its value is
	// the Name of a limit.
	Reason string
	// Key is the name of a header that says which calls share the limit of the others: its value is
	// the same for all of them.
	Key string
	// Whole is the name of a header that says, by the value "true" or "global", that a refusal concerns
	// all calls to the server, and not only those that share a limit.
	Whole string
	// Body, if it is not nil, reads the body of a refusal (of which it gets 64 KiB at most), or of
	// a 403, and reports whether it says that there were too many requests.
	Body func(r *http.Response, body []byte) (Refusal, bool)
	// Throttles says for which other responses Body is to be asked: for servers that refuse with
	// status 200. The body of such a response is read before the caller gets it.
	Throttles func(r *http.Response) bool

	each  bool    // see Key
	names []names // for each of Of; nil: see expanded
	rates bool    // all of its headers' names have "Rate" in them
}

// names are the names of a dialect's headers for one limit, in the form that http.Header keeps.
type names struct{ of, limit, remaining, reset, fill, interval string }

// Expanded returns the dialect with the names of its headers spelled out, so that this need not be
// done for each response.
func (d Dialect) Expanded() Dialect {
	of := d.Of
	if len(of) == 0 {
		of = []string{""}
	}
	d.names, d.rates = nil, true
	for _, pattern := range []string{d.Limit, d.Remaining, d.Reset, d.Fill, d.Interval} {
		d.rates = d.rates && (pattern == "" || strings.Contains(http.CanonicalHeaderKey(pattern), "Rate"))
	}
	for _, name := range of {
		header := func(pattern string) string {
			return http.CanonicalHeaderKey(strings.Replace(pattern, "*", name, 1))
		}
		d.names = append(d.names, names{name, header(d.Limit), header(d.Remaining), header(d.Reset), header(d.Fill), header(d.Interval)})
	}
	return d
}

func expanded(dialects ...Dialect) []Dialect {
	for i := range dialects {
		dialects[i] = dialects[i].Expanded()
	}
	return dialects
}

// get returns a header whose name is in the form in which it is kept; "": it is not there, or has
// no name.
func get(h http.Header, name string) string {
	if v := h[name]; len(v) > 0 && name != "" {
		return v[0]
	}
	return ""
}

// A Refusal is what the body of a refusal says.
type Refusal struct {
	RetryAfter time.Duration // 0: it does not say
	Final      bool          // no retry can mend it
	Whole      bool          // it concerns all calls to the server
}

// Dialects are the known dialects, in the order in which they are tried. Reset-After comes before Reset, since
// no wrong clock changes it.
var Dialects = expanded([]Dialect{
	{Name: "OpenAI, Azure OpenAI", Limit: "X-Ratelimit-Limit-*", Remaining: "X-Ratelimit-Remaining-*", Reset: "X-Ratelimit-Reset-*",
		Of: []string{"requests", "tokens"}, Bucket: true, Body: quotaIsUsedUp},
	{Name: "Anthropic", Limit: "Anthropic-Ratelimit-*-Limit", Remaining: "Anthropic-Ratelimit-*-Remaining", Reset: "Anthropic-Ratelimit-*-Reset",
		Of: []string{"requests", "tokens", "input-tokens", "output-tokens"}, Bucket: true, Body: spendCap},
	{Name: "Atlassian Data Center", Limit: "X-Ratelimit-Limit", Remaining: "X-Ratelimit-Remaining",
		Fill: "X-Ratelimit-Fillrate", Interval: "X-Ratelimit-Interval-Seconds", Bucket: true},
	{Name: "Discord", Remaining: "X-Ratelimit-Remaining", Reset: "X-Ratelimit-Reset-After", Body: retryAfterInBody,
		Key: "X-Ratelimit-Bucket", each: true, Whole: "X-Ratelimit-Scope"},
	{Name: "Discord, without a scope", Whole: "X-Ratelimit-Global"},
	{Name: "Jira", Reason: "Ratelimit-Reason"},
	{Name: "Stripe", Reason: "Stripe-Rate-Limited-Reason"},
	{Name: "GitHub and many others", Remaining: "X-Ratelimit-Remaining", Reset: "X-Ratelimit-Reset", Body: secondaryLimit,
		Key: "X-Ratelimit-Resource"},
	{Name: "the draft's versions 0 to 6, GitLab, Zendesk", Remaining: "Ratelimit-Remaining", Reset: "Ratelimit-Reset"},
	{Name: "Okta, X", Remaining: "X-Rate-Limit-Remaining", Reset: "X-Rate-Limit-Reset"},
	{Name: "Google", Body: retryInfo},
	{Name: "Shopify GraphQL", Body: throttleStatus, Throttles: isShopifyGraphQL},
}...)

// readReason returns which limit has refused, if the server says so.
func readReason(h http.Header, dialects []Dialect) string {
	for i := range dialects {
		if name := dialects[i].Reason; name != "" && h.Get(name) != "" {
			return h.Get(name)
		}
	}
	return ""
}

// readKey returns which calls share the limits, if the server says so.
func readKey(h http.Header, dialects []Dialect) Key {
	for i := range dialects {
		if d := &dialects[i]; d.Key != "" && h.Get(d.Key) != "" {
			return Key{cut(h.Get(d.Key)), d.each}
		}
	}
	return Key{}
}

// cut shortens a name, and copies it, so that a memory of names stays small.
func cut(name string) string { return strings.Clone(name[:min(len(name), maxName)]) }

const maxName = 64

// readWhole reports whether a refusal concerns all calls.
func readWhole(h http.Header, dialects []Dialect) bool {
	for i := range dialects {
		if name := dialects[i].Whole; name != "" && (h.Get(name) == "true" || h.Get(name) == "global") {
			return true
		}
	}
	return false
}

// Resource returns the channel, guild or webhook that a request to Discord is about: the limit of a bucket is one
// for each of them. "": it is about none.
func Resource(r *http.Request) string {
	parts := strings.Split(r.URL.Path, "/")
	for i, part := range parts[:len(parts)-1] {
		switch part {
		case "channels", "guilds", "webhooks":
			return part + "/" + parts[i+1]
		}
	}
	return ""
}

// readDialects reads the first dialect that the server speaks.
func readDialects(h http.Header, now time.Time, dialects []Dialect, s *Reply) {
	rates := false // most responses have no such header, and there are many dialects
	for name := range h {
		rates = rates || strings.Contains(name, "Rate")
	}
	for i := range dialects {
		d := &dialects[i]
		if d.rates && !rates {
			continue
		}
		if d.names == nil {
			whole := d.Expanded()
			d = &whole
		}
		read := false
		for j := range d.names {
			read = d.read(h, now, &d.names[j], s) || read
		}
		if read {
			return
		}
	}
}

// read reads what a dialect says of a limit.
func (d *Dialect) read(h http.Header, now time.Time, names *names, s *Reply) bool {
	left, leftTold := number(get(h, names.remaining))
	if d.Fill != "" {
		fill, ok := number(get(h, names.fill))
		interval, also := number(get(h, names.interval))
		if !leftTold || !ok || !also || !(fill > 0) || !(interval > 0) {
			return false
		}
		l := s.limit(names.of)
		l.Bucket, l.Left = true, left
		l.allow(fill / interval)
		return true
	}
	last, epoch, ok := reset(get(h, names.reset), now)
	if !ok || last > Longest {
		return false
	}
	if !leftTold {
		if get(h, names.remaining) == "" && epoch && !d.Bucket { // GitHub's 403 for a secondary limit
			s.limit(names.of).Stop = last
			return true
		}
		return false
	}
	l := s.limit(names.of)
	if d.Bucket {
		limit, _ := number(get(h, names.limit))
		l.bucket(limit, left, last)
		return true
	}
	l.left(left, last, epoch || strings.HasSuffix(d.Reset, "-After"))
	l.Undated = epoch && h.Get("Date") == ""
	return true
}

// bucket sets what follows from a bucket that will be full in that time.
func (l *Limit) bucket(size, left float64, full time.Duration) {
	l.Bucket, l.Left = true, left
	if size <= left || full <= 0 {
		return
	}
	refill := (size - left) / full.Seconds()
	if size/refill > (2 * time.Minute).Seconds() { // a day's bucket that is nearly full is no reason to be slow
		refill += left / 60
	}
	l.allow(refill)
}

// left sets what follows from permits that are left and must last for a time. Window says that this is
// surely the end of a window.
func (l *Limit) left(permits float64, last time.Duration, window bool) {
	if last > Longest {
		return
	}
	if l.Left < 0 || permits < l.Left {
		l.Left = permits
	}
	l.Ends = max(l.Ends, last)
	least := shortest
	if window {
		least = narrowest
	}
	switch {
	case permits == 0 && (window || last > shortest):
		l.Stop = max(l.Stop, last)
	case permits == 0:
		l.Short = true
	case last > least && last <= widest:
		l.allow(permits / last.Seconds())
	}
}

// allow sets the rate; of several the lowest counts.
func (l *Limit) allow(rate float64) {
	if rate > 0 && rate <= fastest && (l.Rate == 0 || rate < l.Rate) {
		l.Rate = rate
	}
}

// reset reads when a window ends: as seconds from now, as a point in time in
// seconds or milliseconds since 1970, as a duration ("6m0s"), or as a date. Of a window that
// has ended already nothing is to be learned.
func reset(v string, now time.Time) (d time.Duration, epoch, ok bool) {
	v = strings.TrimSpace(v)
	if v == "" {
		return 0, false, false
	}
	if n, ok := number(v); ok {
		d, epoch := delayOrEpoch(n, now)
		return d, epoch, d > 0
	}
	if d, err := time.ParseDuration(v); err == nil {
		return d, false, d > 0
	}
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} { // the latter is Jira's
		if t, err := time.Parse(form, v); err == nil {
			d := until(t, now)
			return d, true, d > 0
		}
	}
	if t, ok := date(v); ok {
		d := until(t, now)
		return d, true, d > 0
	}
	return 0, false, false
}
