package reply

import (
	"net/http"
	"slices"
	"time"
)

// A Reader reads responses by the dialects of their servers. Its methods may be called at the same time.
type Reader struct {
	dialects []Dialect
	headers  map[string]bool // that say something
	always   bool            // also a response without such headers may
	signs    []signOf
	at200    []signOf // that a response 200 may have
}

// NewReader returns a reader for some dialects, and after them the known ones.
func NewReader(own []Dialect) *Reader {
	if len(own) == 0 {
		return known
	}
	return newReader(slices.Concat(expanded(own), known.dialects))
}

func newReader(dialects []Dialect) *Reader {
	r := &Reader{dialects: dialects, headers: map[string]bool{}}
	all := append([]string{
		"Age", "X-From-Cache", "Ratelimit-Policy", "Ratelimit", "X-Should-Retry", "Stripe-Should-Retry",
	}, retryAfters...)
	for i := range dialects {
		d := &dialects[i]
		for _, of := range d.names {
			all = append(all, of.remaining, of.reset)
		}
		all = append(all, d.Reason, d.Key, d.Whole, d.needs)
		r.always = r.always || d.Read != nil && d.needs == ""
		for j := range d.Signs {
			s := signOf{&d.Signs[j], d}
			if r.signs = append(r.signs, s); s.Status == http.StatusOK || s.Status == 0 && s.Body == "" {
				r.at200 = append(r.at200, s)
			}
		}
	}
	for _, name := range all {
		r.headers[name] = true
	}
	return r
}

// says reports whether a response's headers may say something. Most have none of interest.
func (r *Reader) says(h http.Header) bool {
	for name := range h {
		if r.headers[name] {
			return true
		}
	}
	return r.always
}

// Read reads a response with the known dialects: see [Reader.Read].
func Read(r *http.Response, received time.Time) Reply { return known.Read(r, received) }

// Read reads a response received at that time. It ignores malformed headers, and puts back what it reads of the body.
func (r *Reader) Read(of *http.Response, received time.Time) (s Reply) {
	h, clock, says := of.Header, clock{of: of.Header, received: received}, r.says(of.Header)
	s.Status = of.StatusCode
	if says {
		cached := false
		if clock.age, cached = cachedFor(h); cached && !Refuses(s.Status) {
			return Reply{Cached: true}
		}
		readRetryAfter(h, clock, &s)
		if !cached {
			r.limits(h, clock, &s)
		}
	}
	s.Refused = refused(of, &s)
	body := body{of: of, clock: clock}
	r.hear(&body, &s)
	if says {
		r.cause(h, &s)
	}
	if !s.Refused {
		s.Final, s.NotRate, s.Whole, s.Reason = false, false, false, ""
	}
	return s
}

// A signOf is a dialect's sign.
type signOf struct {
	*Sign
	dialect *Dialect
}
