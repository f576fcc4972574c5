package reply

import (
	"net/http"
	"slices"
	"time"
)

// A Reader reads responses by the dialects of their servers. Its methods may be called at the same time.
type Reader struct {
	dialects []Dialect
	headers  map[string]topic
	always   topic // also without such headers
	signs    []signOf
	at200    []signOf // that a response 200 may have
}

// A signOf is a dialect's sign.
type signOf struct {
	*Sign
	dialect *Dialect
}

// A topic is what a header is about.
type topic uint8

const (
	caches topic = 1 << iota
	waits
	draft
	lefts // of a dialect
	causes
)

// NewReader returns a reader for some dialects, and after them the known ones.
func NewReader(own []Dialect) *Reader {
	if len(own) == 0 {
		return known
	}
	return newReader(slices.Concat(expanded(own), known.dialects))
}

func newReader(dialects []Dialect) *Reader {
	r := &Reader{dialects: dialects, headers: map[string]topic{}}
	r.about(caches, "Age", "X-From-Cache")
	r.about(waits, retryAfters...)
	r.about(draft, "Ratelimit-Policy", "Ratelimit")
	r.about(causes, "X-Should-Retry", "Stripe-Should-Retry")
	for i := range dialects {
		d := &dialects[i]
		for _, of := range d.names {
			r.about(lefts, of.remaining, of.reset)
		}
		r.about(causes, d.Reason, d.Key, d.Whole)
		if r.about(lefts, d.needs); d.Read != nil && d.needs == "" {
			r.always = lefts
		}
		for j := range d.Signs {
			s := signOf{&d.Signs[j], d}
			if r.signs = append(r.signs, s); s.Status == http.StatusOK || s.Status == 0 && s.Body == "" {
				r.at200 = append(r.at200, s)
			}
		}
	}
	return r
}

func (r *Reader) about(of topic, names ...string) {
	for _, name := range names {
		if name != "" {
			r.headers[name] |= of
		}
	}
}

// topics returns what a response's headers are about. Most have none of interest.
func (r *Reader) topics(h http.Header) topic {
	about := r.always
	for name := range h {
		about |= r.headers[name]
	}
	return about
}

// Read reads a response with the known dialects: see [Reader.Read].
func Read(r *http.Response, received time.Time) Reply { return known.Read(r, received) }

// Read reads a response received at that time. It ignores malformed headers, and puts back what it reads of the body.
func (r *Reader) Read(of *http.Response, received time.Time) (s Reply) {
	h, about := of.Header, r.topics(of.Header)
	clock := clock{of: h, received: received}
	cached := false
	if about&caches != 0 {
		clock.age, cached = cachedFor(h)
	}
	if cached && !Refuses(of.StatusCode) {
		return Reply{Cached: true}
	}
	s.Status = of.StatusCode
	if about&waits != 0 {
		readRetryAfter(h, clock, &s)
	}
	if !cached && about&(draft|lefts) != 0 {
		r.limits(h, clock, &s)
	}
	s.Refused = refused(of, &s)
	body := body{of: of, clock: clock}
	r.hear(&body, &s)
	if about&causes != 0 {
		r.cause(h, &s)
	}
	if !s.Refused {
		s.Final, s.NotRate, s.Whole, s.Reason = false, false, false, ""
	}
	return s
}
