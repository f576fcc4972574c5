package pacetest

import (
	"io"
	"net/http"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/internal/isnil"
)

// valueError makes the error for a bad value.
var valueError = invalid.In("pacetest")

// An Option changes one setting of [New].
type Option func(*settings) error

type settings struct {
	*Server
	rules []Rule // of the limits, in their order
}

// New returns a server with a limit of that rule, for "requests". A call that is let in is answered
// with 200. An option or a rule that makes no sense is a *[reserve.ValueError].
func New(rule Rule, opts ...Option) (*Server, error) {
	s := settings{Server: &Server{
		handler: http.HandlerFunc(readAll),
		clock:   clockwork.NewRealClock(),
	}}
	one := func(*http.Request) int { return 1 }
	opts = append([]Option{WithDialect(RetryAfter), WithLimit("requests", rule, one)}, opts...)
	for _, opt := range opts {
		if opt == nil {
			return nil, valueError("an option", nil, "one that is not nil")
		}
		if err := opt(&s); err != nil {
			return nil, err
		}
	}
	for i, r := range s.rules {
		s.limits[i].rule = r.start(s.clock.Now())
	}
	return s.Server, nil
}

// readAll is the handler of a server without one of its own.
func readAll(_ http.ResponseWriter, r *http.Request) {
	if r.Body != nil { // of a request that a test has made itself
		_, _ = io.Copy(io.Discard, r.Body)
	}
}

// WithLimit adds a limit with a name, such as "tokens", of which a call takes what it costs. At less than 1 it takes
// nothing. A call is let in by all limits, or takes nothing of any.
func WithLimit(name string, rule Rule, cost func(*http.Request) int) Option {
	return func(s *settings) error {
		switch {
		case rule.err != nil:
			return rule.err
		case rule.start == nil:
			return valueError("the rule of "+name, nil, "one from Window, FixedWindow, Bucket, InFlight or Unlimited")
		case cost == nil:
			return valueError("the cost of "+name, nil, "a function")
		}
		s.limits = append(s.limits, limit{name: name, cost: cost})
		s.rules = append(s.rules, rule)
		return nil
	}
}

// WithDialect sets how the server says what it allows. Default: [RetryAfter].
func WithDialect(d Dialect) Option {
	return func(s *settings) error {
		if d.Status == 0 {
			d.Status = http.StatusTooManyRequests
		}
		if d.Status < 200 || d.Status > 999 {
			return valueError("the status of WithDialect", d.Status, "an HTTP status")
		}
		s.dialect = d
		return nil
	}
}

// WithHandler has the calls that are let in answered by a handler. Until it returns they are in flight. Default: the
// request's body is read, and answered with 200 and no body.
func WithHandler(h http.Handler) Option {
	return func(s *settings) error {
		if isnil.Value(h) {
			return valueError("WithHandler", nil, "a handler")
		}
		s.handler = h
		return nil
	}
}

// WithClock replaces the clock: for tests with a fake clock. In a bubble of testing/synctest none
// is needed. Default: the real one.
func WithClock(c clockwork.Clock) Option {
	return func(s *settings) error {
		if isnil.Value(c) {
			return valueError("WithClock", nil, "a clock")
		}
		s.clock = c
		return nil
	}
}
