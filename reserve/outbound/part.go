package outbound

import (
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// A part is what holds only for some of the requests: see Only.
type part struct {
	holds    func(*http.Request) bool
	longest  time.Duration   // see WithMaxRetryAfter; 0: as for all requests
	dialects []reply.Dialect // its own
	reader   *reply.Reader   // of all that hold
}

// Only makes options hold for some of the requests: the limits of [WithLimit], [PerKey] and [WithMaxInFlight],
// [WithDialect] and [WithMaxRetryAfter]. Refusals and headers concern these limits before those for all requests; a
// WithMaxRetryAfter for all requests holds instead of theirs. Function holds is called for each request, with its URL
// as the caller wrote it. Other options are an error.
//
//	api := func(r *http.Request) bool { return r.URL.Host == "api.example.com" }
//	outbound.New(nil, nil, outbound.Only(api, outbound.WithMaxInFlight(8)))
func Only(holds func(*http.Request) bool, opts ...Option) Option {
	return func(s *settings) error {
		if holds == nil {
			return valueError("the function of Only", nil, "a function")
		}
		var of settings
		if err := join(&of, opts); err != nil {
			return err
		}
		s.adopt(&part{holds: holds, longest: of.maxRetryAfter, dialects: of.dialects}, &of)
		of.parts, of.limits, of.inFlight, of.dialects = nil, nil, nil, nil
		if of.maxRetryAfter, of.ownLongest = 0, false; !reflect.ValueOf(of).IsZero() {
			return valueError("an option of Only", nil, "of the kinds that it names")
		}
		return nil
	}
}

// adopt takes over the parts and limits of settings that hold only for a part.
func (s *settings) adopt(own *part, of *settings) {
	for _, inner := range of.parts {
		its := inner.holds
		inner.holds = func(r *http.Request) bool { return own.holds(r) && its(r) }
	}
	for _, limits := range [][]limit{of.limits, of.inFlight} {
		for i := range limits {
			if l := &limits[i]; l.part == nil {
				l.part, l.whole = own, false
			}
		}
	}
	s.parts = append(append(s.parts, own), of.parts...)
	s.limits, s.inFlight = append(s.limits, of.limits...), append(s.inFlight, of.inFlight...)
}

// Options joins options that are made for each transport anew, such as those with limiters. New returns make's error.
func Options(make func() ([]Option, error)) Option {
	return func(s *settings) error {
		if make == nil {
			return valueError("the function of Options", nil, "a function")
		}
		opts, err := make()
		if err != nil {
			return err
		}
		return join(s, opts)
	}
}

func join(s *settings, opts []Option) error {
	for _, opt := range opts {
		if opt == nil {
			return valueError("an option", nil, "an option")
		}
		if err := opt(s); err != nil {
			return err
		}
	}
	return nil
}

// divide puts the limits of parts behind the others, and the dialects of parts between the caller's and the known ones.
func (t *Transport) divide() {
	slices.SortStableFunc(t.limits, func(a, b limit) int {
		switch {
		case a.part == nil && b.part != nil:
			return -1
		case a.part != nil && b.part == nil:
			return 1
		}
		return 0
	})
	for _, p := range t.parts {
		p.reader = reply.NewReader(slices.Concat(t.dialects, p.dialects))
		if t.ownLongest {
			p.longest = 0
		}
	}
}

// partOf returns the last part of a request that has rules of its own; nil: none.
func (t *Transport) partOf(r *http.Request) *part {
	for _, p := range slices.Backward(t.parts) {
		if p.holds(r) {
			return p
		}
	}
	return nil
}

// holding returns a function that reports whether a limit of a list holds for a request. The limits of a part are
// neighbours.
func holding(r *http.Request) func(*limit) bool {
	var of *part
	holds := true
	return func(l *limit) bool {
		if l.part != of {
			of = l.part
			holds = of == nil || of.holds(r)
		}
		return holds
	}
}

// rules returns the rules for a part's requests, or for all if it is nil.
func (p *part) rules(of rules) rules {
	if p != nil && p.longest > 0 {
		of.maxRetryAfter = p.longest
	}
	return of
}

// readerOf returns the reader of responses to a part's requests, or to all if it is nil.
func (t *Transport) readerOf(p *part) *reply.Reader {
	if p != nil {
		return p.reader
	}
	return t.reader
}

// alone reports whether the caller has no limits for the call.
func (t *Transport) alone(w *way) bool { return t.learned.alone && w.own == 0 }

// ownsWhole reports whether what the server says of all calls concerns a limit of the caller's.
func (t *Transport) ownsWhole(own charges) bool { return t.whole && own.find((*charge).ofPart) == nil }

func (a *charge) ofPart() bool { return a.limit.part != nil }

// whole returns the limit that a refusal of all calls concerns: beside a part's limits not the caller's for all
// requests, but a learned limit; nil: none.
func (cs charges) whole() *charge {
	parts := cs.find((*charge).ofPart) != nil
	return cs.find(func(a *charge) bool { return a.limit.whole && (!parts || a.limit.scope == nil) })
}
