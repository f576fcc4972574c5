package inbound

import (
	"fmt"
	"net/http"
	"time"

	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/internal/isnil"
)

var valueError = invalid.In("inbound")

const defaultJitter = 3 * time.Second

// An Option changes one setting of a middleware.
type Option func(*Middleware) error

// WithQueue lets requests wait for up to maxWait, at most atMost at a time, each with up to 64 KiB of its body in
// memory. Others are refused on arrival. Default: no request waits.
//
// At 10/s and WithQueue(2*time.Second, 15), of 30 requests at one moment one passes, 15 wait, and 14 are refused. At
// its own limiter a key has at most as many places as are left: of 20 one client takes 10, two take 6 each.
func WithQueue(maxWait time.Duration, atMost int) Option {
	return waits("WithQueue", "wait", maxWait, atMost, func(m *Middleware) {
		m.queue.maxWait, m.queue.places = maxWait, atMost
	})
}

// WithTarpit delays refusals, at most atMost at a time: it slows down clients that retry at once. Default: none.
func WithTarpit(delay time.Duration, atMost int) Option {
	return waits("WithTarpit", "delay", delay, atMost, func(m *Middleware) {
		m.tarpit.longest, m.tarpit.places = delay, int64(atMost)
	})
}

// WithCost sets how many permits a request takes of each tier without a [Cost]. 0 or less takes nothing. Default: 1.
func WithCost(cost func(*http.Request) int) Option {
	return function("WithCost", cost, func(m *Middleware) { m.cost = cost })
}

// WithSkip lets requests pass for which skip is true: health checks.
func WithSkip(skip func(*http.Request) bool) Option {
	return function("WithSkip", skip, func(m *Middleware) { m.skip = skip })
}

// WithRefusal sets the function that writes status and body of refusals. The headers are set, and may be changed.
// Default: (*Refusal).ServeHTTP.
func WithRefusal(answer func(http.ResponseWriter, *http.Request, *Refusal)) Option {
	return function("WithRefusal", answer, func(m *Middleware) { m.answer = answer })
}

// WithOnFailure sets a function for failures of a tier, open or closed. Calls may be concurrent.
func WithOnFailure(failed func(*http.Request, *TierError)) Option {
	return function("WithOnFailure", failed, func(m *Middleware) { m.onFailure = failed })
}

// WithOnWait sets a function for requests that pass after a wait in the queue (package paceotel). Calls may be
// concurrent.
func WithOnWait(waited func(*http.Request, time.Duration)) Option {
	return function("WithOnWait", waited, func(m *Middleware) { m.onWait = waited })
}

// WithJitter sets how much longer than necessary a client may be told to stay away, so that refused clients do not
// come back together: d, or a quarter of the wait if that is longer. A global limiter adds up to a minute. 0: the
// shortest time. Default: 3 s.
func WithJitter(d time.Duration) Option {
	return func(m *Middleware) error {
		if d < 0 {
			return valueError("WithJitter", d, "0 or more")
		}
		m.fields.jitter = d
		return nil
	}
}

// WithoutQuotas leaves out RateLimit-Policy and RateLimit.
func WithoutQuotas() Option {
	return func(m *Middleware) error { m.fields.quotas = false; return nil }
}

// WithXRateLimit adds X-RateLimit-Limit, -Remaining and -Reset of the tier that is closest to refusing. Reset is in
// seconds since 1970: when all of the limit may be used again, and in a refusal when Retry-After ends. Default: not
// sent.
func WithXRateLimit() Option {
	return func(m *Middleware) error { m.fields.xRateLimit = true; return nil }
}

func function[T, F any](name string, f F, set func(*T)) func(*T) error {
	return func(t *T) error {
		if isnil.Value(f) {
			return valueError(name, nil, "a function")
		}
		set(t)
		return nil
	}
}

func apply[T any, O ~func(*T) error](t *T, opts []O) error {
	for i, opt := range opts {
		if opt == nil {
			return valueError(fmt.Sprint("option ", i+1), nil, "an option")
		}
		if err := opt(t); err != nil {
			return err
		}
	}
	return nil
}

func waits(name, what string, d time.Duration, n int, set func(*Middleware)) Option {
	return func(m *Middleware) error {
		if d <= 0 {
			return valueError(name, d, "a positive "+what)
		}
		if n < 1 {
			return valueError(name, n, "at least 1 request")
		}
		set(m)
		return nil
	}
}
