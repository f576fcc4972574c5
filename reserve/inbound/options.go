package inbound

import (
	"net/http"
	"time"

	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/internal/isnil"
)

var valueError = invalid.In("inbound")

const defaultJitter = 3 * time.Second

// An Option changes one setting of [New], which returns a *[reserve.ValueError] for a bad value.
type Option func(*settings) error

type settings struct {
	queueWait   time.Duration // 0: no request waits
	queuePlaces int
	tarpitDelay time.Duration // 0: no refusal is delayed
	tarpitMost  int64

	cost      func(*http.Request) int
	skip      func(*http.Request) bool
	answer    func(http.ResponseWriter, *http.Request, *Refusal)
	onFailure func(*http.Request, *TierError)
	onWait    func(*http.Request, time.Duration)

	jitter        time.Duration
	withoutQuotas bool
	xRateLimit    bool
}

// WithQueue lets requests wait for up to maxWait, at most atMost at a time, each with up to 64 KiB of its body in
// memory. Others are refused at once. A key gets at most as many places as are left: of 20 one client takes 10, two
// take 6 each. Default: no request waits.
func WithQueue(maxWait time.Duration, atMost int) Option {
	return waits("WithQueue", "wait", maxWait, atMost, func(s *settings) {
		s.queueWait, s.queuePlaces = maxWait, atMost
	})
}

// WithTarpit delays refusals, at most atMost at a time, for clients that retry at once. Default: none.
func WithTarpit(delay time.Duration, atMost int) Option {
	return waits("WithTarpit", "delay", delay, atMost, func(s *settings) {
		s.tarpitDelay, s.tarpitMost = delay, int64(atMost)
	})
}

// WithCost sets how many permits a request takes of each tier without a [Cost]; 0 or less takes nothing. Default: 1.
func WithCost(cost func(*http.Request) int) Option {
	return function("WithCost", cost, func(s *settings) { s.cost = cost })
}

// WithSkip lets requests pass for which skip is true: health checks.
func WithSkip(skip func(*http.Request) bool) Option {
	return function("WithSkip", skip, func(s *settings) { s.skip = skip })
}

// WithRefusal sets the function that writes status and body of refusals. The headers are set, and may be changed.
// Default: (*Refusal).ServeHTTP.
func WithRefusal(answer func(http.ResponseWriter, *http.Request, *Refusal)) Option {
	return function("WithRefusal", answer, func(s *settings) { s.answer = answer })
}

// WithOnFailure sets a function for failures of a tier, open or closed, called concurrently.
func WithOnFailure(failed func(*http.Request, *TierError)) Option {
	return function("WithOnFailure", failed, func(s *settings) { s.onFailure = failed })
}

// WithOnWait sets a function for requests that pass after a wait (package paceotel), called concurrently.
func WithOnWait(waited func(*http.Request, time.Duration)) Option {
	return function("WithOnWait", waited, func(s *settings) { s.onWait = waited })
}

// WithJitter sets how much longer than necessary a client may be told to stay away, so that refused clients come back
// apart: d, or a quarter of a longer wait; up to a minute at a global limiter. 0: the shortest time. Default: 3 s.
func WithJitter(d time.Duration) Option {
	return func(s *settings) error {
		if d < 0 {
			return valueError("WithJitter", d, "0 or more")
		}
		s.jitter = d
		return nil
	}
}

// WithoutQuotas leaves out RateLimit-Policy and RateLimit.
func WithoutQuotas() Option {
	return func(s *settings) error { s.withoutQuotas = true; return nil }
}

// WithXRateLimit adds X-RateLimit-Limit, -Remaining and -Reset of the tier that is closest to refusing. Reset is in
// seconds since 1970: when all of the limit may be used again, and in a refusal when Retry-After ends.
func WithXRateLimit() Option {
	return func(s *settings) error { s.xRateLimit = true; return nil }
}

// A TierOption changes one setting of a tier.
type TierOption func(*tierSettings) error

type tierSettings struct {
	maxKeys  int                     // 0: the tier has no limiters of its own by key
	quota    quota                   // of all keys; zero if it isn't known
	cost     func(*http.Request) int // nil: the middleware's
	after    func(*http.Request, Response) int
	dryRun   bool
	failOpen bool
	overload bool
}

// MaxKeys sets for how many keys a [PerKey] tier has room, 1 or more. A full limiter's key needs none. A key takes some
// 115 bytes, and some 490 while a later tier, a wait or a window needs its limiter. Default: 1<<20.
func MaxKeys(n int) TierOption {
	return func(s *tierSettings) error {
		if n < 1 {
			return valueError("MaxKeys", n, "at least 1 key")
		}
		if s.maxKeys == 0 {
			return valueError("MaxKeys", n, "a tier from PerKey")
		}
		s.maxKeys = n
		return nil
	}
}

// DryRun lets all requests pass the tier, charges them, and counts the requests that it would have refused.
func DryRun() TierOption { return func(s *tierSettings) error { s.dryRun = true; return nil } }

// FailOpen lets requests pass the tier when its key function or its limiter fails (Redis is down). Default: they get
// 503.
func FailOpen() TierOption { return func(s *tierSettings) error { s.failOpen = true; return nil } }

// Overload says that the tier protects the server: a refusal by it alone is 503 with the problem type
// temporary-reduced-capacity. Default: 429 and quota-exceeded.
func Overload() TierOption { return func(s *tierSettings) error { s.overload = true; return nil } }

// Quota sets the tier's entry in RateLimit-Policy: requests (1 to 999999999999999) in a window of whole seconds.
// Default: the policy's rate. At 20/s that is 20 in 1 s; at 1000 an hour, with a store for as many, 1000 in 3600 s.
func Quota(requests int, window time.Duration) TierOption {
	return func(s *tierSettings) error {
		if requests < 1 || int64(requests) > maxInteger {
			return valueError("Quota", requests, "1 to 999999999999999 requests")
		}
		if window < time.Second || window%time.Second != 0 {
			return valueError("Quota", window, "a window of whole seconds")
		}
		s.quota = quota{requests: int64(requests), seconds: int64(window / time.Second)}
		return nil
	}
}

// Cost is [WithCost] for this tier: a request may cost 1 of "requests" and 200 of "rows".
func Cost(cost func(*http.Request) int) TierOption {
	return function("Cost", cost, func(s *tierSettings) { s.cost = cost })
}

// ChargeAfter charges a request by its answer: failed logins, or bytes. The request takes its cost ([Cost], [WithCost])
// beforehand, so with 5 failures in 15 minutes, of 100 attempts at one moment 5 reach the handler. After the handler,
// the function says what it costs: the rest comes back, or the key's next requests pay for the excess. If the handler
// panics, its request pays its cost.
func ChargeAfter(cost func(*http.Request, Response) int) TierOption {
	return function("ChargeAfter", cost, func(s *tierSettings) { s.after = cost })
}

func function[S, F any](name string, f F, set func(*S)) func(*S) error {
	return func(s *S) error {
		if isnil.Value(f) {
			return valueError(name, nil, "a function")
		}
		set(s)
		return nil
	}
}

func waits(name, what string, d time.Duration, n int, set func(*settings)) Option {
	return func(s *settings) error {
		if d <= 0 {
			return valueError(name, d, "a positive "+what)
		}
		if n < 1 {
			return valueError(name, n, "at least 1 request")
		}
		set(s)
		return nil
	}
}
