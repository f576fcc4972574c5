package apis

import (
	"hash/maphash"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/window"
)

// An API is what is known of an API's limits. See [List].
type API struct {
	Name    string
	Call    string    // with the numbers of the documentation's examples: "apis.Zendesk(400)"
	Hosts   []string  // each with its subdomains
	Says    string    // the limits, in short
	Source  string    // the documentation's address
	Checked time.Time // the day on which that was read
}

type api struct {
	API
	credential []string      // "Header" or "?parameter", beside the Authorization
	perHost    bool          // each host has its own limits: a shop, a site
	limits     []limit       // a refusal without a name is because of the last that holds
	longest    time.Duration // see outbound.WithMaxRetryAfter
	dialect    outbound.Dialect
	given      []number // by the caller
}

type number struct {
	name  string
	value float64
}

// A limit is of n permits in per (a window, or the calendar's periods), of n in flight, or a bucket of n that gets
// refill a second. Without n, responses tell what is left.
type limit struct {
	name     string
	n        float64
	per      time.Duration
	calendar bool
	inFlight bool
	refill   float64
	penalty  time.Duration
	adaptive bool // nothing but refusals tells of other programs, and these are dear, or many

	methods  string                       // for which it holds; "": all
	paths    []string                     // for which it holds; none: all
	not      []string                     // for which it does not hold
	everyone bool                         // all credentials share it
	each     func(r *http.Request) string // whose permits they are, beside the credential's; nil: no other's
	cost     func(r *http.Request) int    // nil: 1

	// Fields of a response's body say what a call was expected to cost, and what it cost. Until one does: guess.
	asked, charged string
	guess          float64
}

func day(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

func (a api) option() outbound.Option {
	return outbound.Options(func() ([]outbound.Option, error) {
		for _, n := range a.given {
			if !(n.value > 0) || math.IsInf(n.value, 1) {
				return nil, invalid.In("apis")(n.name+" of "+a.Name, n.value, "more than 0")
			}
		}
		var opts []outbound.Option
		for _, l := range a.limits {
			opt, err := a.limit(l)
			if err != nil {
				return nil, err
			}
			opts = append(opts, outbound.WithLimit(opt))
		}
		if a.dialect.Name != "" {
			opts = append(opts, outbound.WithDialect(a.dialect))
		}
		if a.longest > 0 {
			opts = append(opts, outbound.WithMaxRetryAfter(a.longest))
		}
		return []outbound.Option{outbound.Only(a.holds, opts...)}, nil
	})
}

func (a api) limit(l limit) (outbound.Limit, error) {
	of := outbound.Limit{Name: l.name, Penalty: l.penalty, Adaptive: l.adaptive, Cost: l.costs}
	key := func(r *http.Request) string { return a.key(&l, r) }
	if l.inFlight {
		of.InFlight, of.Key = int(l.n), key
		return of, nil
	}
	policy, err := l.policy()
	if l.asked != "" {
		(&estimates{first: l.guess, of: map[string]float64{}}).learn(&of, l.asked, l.charged, key)
	}
	of.Keyed = outbound.Keyed(key, keyed.New(func(string) (*reserve.Policy, error) { return policy, nil }).For)
	return of, err
}

func (l *limit) policy() (*reserve.Policy, error) {
	switch {
	case l.n == 0:
		return pace.Bursty(math.Inf(1))
	case l.refill > 0:
		return pace.TokenBucket(l.refill, l.n)
	case l.calendar:
		return calendar.Policy(int(l.n), calendar.Every(l.per))
	}
	return window.Policy(int(l.n), l.per)
}

func (l *limit) costs(r *http.Request) int {
	switch {
	case !l.holds(r):
		return 0
	case l.cost == nil:
		return 1
	}
	return l.cost(r)
}

func (l *limit) holds(r *http.Request) bool {
	return (l.methods == "" || strings.Contains(l.methods, r.Method) && r.Method != "") &&
		(len(l.paths) == 0 || anyOf(l.paths, r.URL.Path)) && !anyOf(l.not, r.URL.Path)
}

// holds reports whether a request is to one of the API's hosts.
func (a *api) holds(r *http.Request) bool {
	host := strings.TrimSuffix(r.URL.Hostname(), ".")
	for _, h := range a.Hosts {
		if n := len(host) - len(h); n == 0 && strings.EqualFold(host, h) ||
			n > 0 && host[n-1] == '.' && strings.EqualFold(host[n:], h) {
			return true
		}
	}
	return false
}

var seed = maphash.MakeSeed()

// key returns whose permits a request needs: a hash of its credential and of what else the limit is for.
func (a *api) key(l *limit, r *http.Request) string {
	var h maphash.Hash
	h.SetSeed(seed)
	part := func(s string) {
		h.WriteString(s)
		h.WriteByte(0)
	}
	if a.perHost {
		part(strings.ToLower(strings.TrimSuffix(r.URL.Hostname(), ".")))
	}
	if l.each != nil {
		part(l.each(r))
	}
	if !l.everyone {
		part(authorization(r))
		for _, name := range a.credential {
			if parameter, ok := strings.CutPrefix(name, "?"); ok {
				part(r.URL.Query().Get(parameter))
			} else {
				part(r.Header.Get(name))
			}
		}
	}
	return a.Name + "#" + strconv.FormatUint(h.Sum64(), 16)
}

// authorization returns the Authorization header, or the token of a signed request, whose signature changes.
func authorization(r *http.Request) string {
	value := r.Header.Get("Authorization")
	switch scheme, rest, _ := strings.Cut(value, " "); {
	case value == "" && r.URL.User != nil:
		return r.URL.User.String()
	case strings.EqualFold(scheme, "OAuth") && strings.Contains(rest, "oauth_signature"):
		return parameter(rest, "oauth_consumer_key") + " " + parameter(rest, "oauth_token")
	}
	return value
}

// parameter returns the value of a parameter in a list such as OAuth's.
func parameter(list, name string) string {
	for _, p := range strings.Split(list, ",") {
		if key, value, ok := strings.Cut(strings.TrimSpace(p), "="); ok && key == name {
			return value
		}
	}
	return ""
}

// anyOf reports whether a path is as one of the patterns: see segment.
func anyOf(patterns []string, path string) bool {
	for _, p := range patterns {
		if _, ok := segment(p, path); ok {
			return true
		}
	}
	return false
}

// segment matches a path to a pattern, and returns what it has in the place of {}. A * is any segment, and ** any rest.
func segment(pattern, path string) (of string, ok bool) {
	for pattern != "" {
		var want, has string
		want, pattern, _ = strings.Cut(pattern[1:], "/")
		if want == "**" {
			return of, true
		}
		if path == "" || path[0] != '/' {
			return "", false
		}
		more := false
		if has, path, more = strings.Cut(path[1:], "/"); more {
			path = "/" + path
		}
		if want == "{}" {
			of = has
		} else if want != "*" && want != has {
			return "", false
		}
		if pattern != "" {
			pattern = "/" + pattern
		}
	}
	return of, path == "" || path == "/"
}

// in returns what a path has in the place of {} in the first pattern that it is as.
func in(patterns ...string) func(*http.Request) string {
	return func(r *http.Request) string {
		for _, p := range patterns {
			if of, ok := segment(p, r.URL.Path); ok {
				return of
			}
		}
		return ""
	}
}

// endpoint returns the method and the path of a request, with a * for what looks like an identifier: it has a digit or
// a capital letter, and is not the first part, which is a version.
func endpoint(r *http.Request) string {
	parts := strings.Split(r.URL.Path, "/")
	for i := 2; i < len(parts); i++ {
		if strings.ContainsAny(parts[i], "0123456789") || strings.ToLower(parts[i]) != parts[i] || parts[i-1] == "username" {
			parts[i] = "*"
		}
	}
	return r.Method + " " + strings.Join(parts, "/")
}
