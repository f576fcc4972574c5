package reply

import (
	"net/http"
	"strings"
	"time"
)

// A Dialect is outbound's, where the fields are described.
type Dialect struct {
	Name                    string
	Limit, Remaining, Reset string
	Of                      []string
	Bucket                  bool
	Every                   time.Duration
	Refill                  float64
	Fill, Interval          string
	Reason, Key, Whole      string
	Body                    func(r *http.Response, body []byte) (Refusal, bool)
	Throttles               func(r *http.Response) bool
	Signs                   []Sign
	Read                    func(h http.Header) []Left

	each  bool    // see Key
	names []names // for each of Of; nil: see expanded
	rates bool    // all of its headers' names have "Rate" in them
}

// A Sign is what makes a response a refusal: outbound's.
type Sign struct {
	Status        int
	Header, Value string
	Body          string
	Final         bool
}

// A Left is what a server says is left of a limit: outbound's.
type Left struct {
	Of      string
	Permits float64
	Limit   float64
	Reset   time.Duration
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
	if d.Read != nil {
		d.rates = false
	}
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
