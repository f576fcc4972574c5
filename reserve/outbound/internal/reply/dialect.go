package reply

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Dialect is outbound's.
type Dialect struct {
	Name                    string
	Limit, Remaining, Reset string
	Of                      []string
	Bucket                  bool
	Every                   time.Duration
	Refill                  float64
	Reason, Key, Whole      string
	Body                    func(r *http.Response, body []byte) (Refusal, bool)
	Signs                   []Sign
	Read                    func(h http.Header, now time.Time) []Left

	each  bool    // see Key
	names []names // for each of Of
	needs string  // a header without which Read says nothing; "": not known
}

// A Sign is outbound's.
type Sign struct {
	Status                    int
	Host, Path, Header, Value string
	Body                      string
	Final, NotRate            bool
	After                     time.Duration

	// The dialect's Body must say so, too; the response says no time; it does not say that a message is too large.
	asks, untold, small bool
}

// A Left is outbound's.
type Left struct {
	Of      string
	Permits float64
	Limit   float64
	Reset   time.Duration
	Rate    float64
}

// A Refusal is outbound's RefusalBody.
type Refusal struct {
	RetryAfter            time.Duration
	Final, NotRate, Whole bool

	headers http.Header // that the body has
}

// names are a dialect's headers for one limit, in canonical form.
type names struct{ of, limit, remaining, reset string }

// expanded returns dialects with headers in canonical form.
func expanded(dialects []Dialect) []Dialect {
	dialects = slices.Clone(dialects)
	for i := range dialects {
		dialects[i].expand()
	}
	return dialects
}

func (d *Dialect) expand() {
	of := d.Of
	if len(of) == 0 {
		of = []string{""}
	}
	d.names = nil
	for _, name := range of {
		header := func(pattern string) string {
			return http.CanonicalHeaderKey(strings.Replace(pattern, "*", name, 1))
		}
		d.names = append(d.names, names{name, header(d.Limit), header(d.Remaining), header(d.Reset)})
	}
	for _, name := range []*string{&d.Reason, &d.Key, &d.Whole} {
		*name = http.CanonicalHeaderKey(*name)
	}
	d.Signs = slices.Clone(d.Signs)
	for i := range d.Signs {
		d.Signs[i].Header = http.CanonicalHeaderKey(d.Signs[i].Header)
	}
}

func get(h http.Header, name string) string {
	if name == "" { // fast path
		return ""
	}
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// cut shortens and copies a name, so that a memory of names stays small.
func cut(name string) string { return strings.Clone(name[:min(len(name), maxName)]) }

const maxName = 64

// Resource returns the channel, guild or webhook of a request to Discord, each with its own limit in a bucket; "":
// none.
func Resource(r *http.Request) string {
	if of := resource.FindStringSubmatch(r.URL.Path); of != nil {
		return of[1]
	}
	return ""
}

var resource = regexp.MustCompile(`/((?:channels|guilds|webhooks)/[^/]*)`)
