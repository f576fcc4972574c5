package inbound

import (
	"net/http"
	"time"

	"github.com/nextfree/pace/internal/invalid"
)

// valueError makes the error for a bad value.
var valueError = invalid.In("inbound")

// defaultJitter is WithJitter's default.
const defaultJitter = 3 * time.Second

// An Option changes one setting of a middleware.
type Option func(*Middleware) error

// WithQueue lets requests wait for up to maxWait instead of refusing them, at most atMost of them at a time. This is
// decided when a request arrives. One that would have to wait longer, or finds the queue full, is refused at once and
// has taken nothing. The body of a request that waits is read meanwhile, if it is no longer than 64 KiB. So the queue
// takes up to 64 KiB of memory for each request. Default: no request waits.
//
// No client takes all places. Where a request waits for the limiter of its key, that key has at most as many places as
// are left. Of 20 places one client takes 10, two take 6 each, and nine take 2 each. Where it waits for a limiter of
// all clients, places are given first come, first served.
//
// Take 10/s for all, and WithQueue(2*time.Second, 15). Of 30 requests that come at one moment, one passes at once. The
// next 15 wait for 0.1 to 1.5 s. The other 14 are refused because the queue is full.
func WithQueue(maxWait time.Duration, atMost int) Option {
	return func(m *Middleware) error {
		if maxWait <= 0 {
			return valueError("WithQueue", maxWait, "a positive wait")
		}
		if atMost < 1 {
			return valueError("WithQueue", atMost, "at least 1 request")
		}
		m.queue.maxWait, m.queue.places = maxWait, atMost
		return nil
	}
}

// WithTarpit delays refusals, at most atMost of them at a time. Others are sent at once. It slows down clients that
// send their next request as soon as the last one was answered, even with a refusal. Default: none is delayed.
func WithTarpit(delay time.Duration, atMost int) Option {
	return func(m *Middleware) error {
		if delay <= 0 {
			return valueError("WithTarpit", delay, "a positive delay")
		}
		if atMost < 1 {
			return valueError("WithTarpit", atMost, "at least 1 request")
		}
		m.tarpit.longest, m.tarpit.places = delay, int64(atMost)
		return nil
	}
}

// WithCost sets how many permits a request takes of each tier that has no [Cost] of its own. A
// request that costs 0 or less takes nothing. Default: 1.
func WithCost(cost func(*http.Request) int) Option {
	return func(m *Middleware) error {
		m.cost = cost
		return checkFunction("WithCost", cost == nil)
	}
}

// WithSkip lets the requests pass for which skip is true: a health check, for one.
func WithSkip(skip func(*http.Request) bool) Option {
	return func(m *Middleware) error {
		m.skip = skip
		return checkFunction("WithSkip", skip == nil)
	}
}

// WithRefusal sets a function that answers refused requests. The headers are set already, and may be changed. The
// function writes status and body. Default: (*Refusal).ServeHTTP.
func WithRefusal(answer func(http.ResponseWriter, *http.Request, *Refusal)) Option {
	return func(m *Middleware) error {
		m.answer = answer
		return checkFunction("WithRefusal", answer == nil)
	}
}

// WithOnFailure sets a function that is called when a tier fails, open or closed: to log it.
// Several requests may call it at the same time.
func WithOnFailure(failed func(*http.Request, *TierError)) Option {
	return func(m *Middleware) error {
		m.onFailure = failed
		return checkFunction("WithOnFailure", failed == nil)
	}
}

// WithOnWait sets a function that is called when a request has waited in the queue and is let through. It can trace
// that: see package paceotel. Several requests may call it at the same time.
func WithOnWait(waited func(*http.Request, time.Duration)) Option {
	return func(m *Middleware) error {
		m.onWait = waited
		return checkFunction("WithOnWait", waited == nil)
	}
}

// WithJitter sets by how much longer than necessary a client may be told to stay
// away, so that refused clients do not come back together. A wait longer than four
// times that is spread by a quarter of itself. Clients that a global limiter refuses are told times one
// after another, up to a minute more. 0: all are told the shortest time. Default: 3 s.
func WithJitter(d time.Duration) Option {
	return func(m *Middleware) error {
		if d < 0 {
			return valueError("WithJitter", d, "0 or more")
		}
		m.fields.jitter = d
		return nil
	}
}

// WithoutQuotas leaves out RateLimit-Policy and RateLimit: where clients are not to know
// the limits.
func WithoutQuotas() Option {
	return func(m *Middleware) error { m.fields.quotas = false; return nil }
}

// WithXRateLimit adds the older X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset, of the tier that is
// closest to refusing. Reset is in seconds since 1970, as at GitHub. It is when all of the limit may be used again, or
// a little later. In a refusal it is when Retry-After ends. Default: they are not sent.
func WithXRateLimit() Option {
	return func(m *Middleware) error { m.fields.xRateLimit = true; return nil }
}

// checkFunction returns the error of a function that is nil.
func checkFunction(name string, isNil bool) error {
	if isNil {
		return valueError(name, nil, "a function")
	}
	return nil
}
