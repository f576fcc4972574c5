package pacetest

import (
	"cmp"
	"io"
	"net/http"

	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/internal/isnil"
)

var valueError = invalid.In("pacetest")

// An Option changes one setting of [New].
type Option func(*settings) error

type settings struct {
	dialect Dialect
	handler http.Handler
	limits  []limit
}

// New returns a server with a limit of that rule, for "requests". A bad option or rule is a *[reserve.ValueError].
func New(rule Rule, opts ...Option) (*Server, error) {
	s := &Server{settings: settings{handler: http.HandlerFunc(readAll)}}
	one := func(*http.Request) int { return 1 }
	opts = append([]Option{WithDialect(RetryAfter), WithLimit("requests", rule, one)}, opts...)
	for _, opt := range opts {
		if opt == nil {
			return nil, valueError("an option", nil, "one that is not nil")
		}
		if err := opt(&s.settings); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func readAll(_ http.ResponseWriter, r *http.Request) {
	if r.Body != nil { // of a request that a test has made itself
		_, _ = io.Copy(io.Discard, r.Body)
	}
}

// WithLimit adds a limit with a name, such as "tokens". A call takes its cost (less than 1: nothing). All limits let a
// call in, or none takes anything.
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
		s.limits = append(s.limits, limit{name: name, cost: cost, rule: rule.start()})
		return nil
	}
}

// WithDialect sets how the server says what it allows. Default: [RetryAfter].
func WithDialect(d Dialect) Option {
	return func(s *settings) error {
		d.Status = cmp.Or(d.Status, http.StatusTooManyRequests)
		if d.Status < 200 || d.Status > 999 {
			return valueError("the status of WithDialect", d.Status, "an HTTP status")
		}
		s.dialect = d
		return nil
	}
}

// WithHandler sets the handler of accepted calls, which are in flight until it returns. Default: it reads the body, and
// answers with 200 and no body.
func WithHandler(h http.Handler) Option {
	return func(s *settings) error {
		if isnil.Value(h) {
			return valueError("WithHandler", nil, "a handler")
		}
		s.handler = h
		return nil
	}
}
