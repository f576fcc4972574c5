package inbound

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/hooks"
	"github.com/nextfree/pace/reserve/internal/keyhooks"
)

// engine is how this package looks into limiters.
var engine = hooks.Open[*reserve.Policy, *reserve.Limiter, *reserve.Reservation]()

// A Tier is one of the limits that a request has to pass: a name and a limiter, for
// everybody or for each key. Make it with [Global], [GlobalBy], [PerKey] or
// [PerKeyBy]; [New] reports what is wrong with it. A Tier may be used in several middlewares, which
// then share its limiter.
type Tier struct {
	name    string
	reserve func(ctx context.Context, r *http.Request, n int, maxWait time.Duration) (keyhooks.Hold, error)
	limiter *reserve.Limiter // of a Global tier in this process
	rate    func() float64   // of a limiter that all clients share; nil if there is none, or it isn't known
	quota   quota            // zero if it isn't known
	// peek returns how long a request would wait, and takes nothing; nil if the limiter is not in this
	// process.
	peek    func(r *http.Request, n int) (time.Duration, error)
	maxKeys int           // of a PerKey tier
	shared  func() uint64 // of a PerKey tier: see TierStats

	dryRun   bool
	failOpen bool
	overload bool
	err      error
}

// Global limits all requests together, by a limiter of the policy's.
func Global(name string, policy *reserve.Policy, opts ...TierOption) Tier {
	if policy == nil {
		return Tier{name: name, err: noPolicy(name)}
	}
	return GlobalBy(name, policy.Limiter(), opts...)
}

// GlobalBy limits all requests together, by a limiter of one's own: one that is used elsewhere too,
// or is shared between machines.
func GlobalBy(name string, by reserve.Reserver, opts ...TierOption) Tier {
	t := Tier{name: name}
	if isnil.Value(by) {
		t.err = &reserve.ValueError{Package: "inbound", Name: "the limiter of tier " + name, Value: nil, Want: "a limiter"}
		return t
	}
	t.reserve = func(ctx context.Context, _ *http.Request, n int, maxWait time.Duration) (h keyhooks.Hold, err error) {
		h.Reservation, err = by.ReserveWithin(ctx, n, maxWait)
		return
	}
	if l, ok := by.(keyhooks.Limiter); ok {
		t.reserve = func(ctx context.Context, _ *http.Request, n int, maxWait time.Duration) (keyhooks.Hold, error) {
			return l.Hold(ctx, n, maxWait)
		}
	}
	if l, ok := by.(interface{ Rate() float64 }); ok {
		t.rate = l.Rate
	}
	if l, ok := by.(*reserve.Limiter); ok {
		t.limiter, t.quota = l, quotaOf(engine.Outlook(l))
		t.peek = func(_ *http.Request, n int) (time.Duration, error) { return engine.Wait(l, n) }
	}
	return t.with(opts)
}

// KeyedReserver has a limiter for each key, as a *keyed.Limiters[K] does.
type KeyedReserver[K comparable] interface {
	ReserveWithin(ctx context.Context, key K, n int, maxWait time.Duration) (reserve.Reservation, error)
}

// PerKeyBy limits the requests of each key apart, by limiters of one's own: with
// another policy for some keys, or shared between machines. The key function may
// return [ErrSkip]; any other error is a failure of the tier (see [FailOpen]).
func PerKeyBy[K comparable](name string, key func(*http.Request) (K, error), by KeyedReserver[K], opts ...TierOption) Tier {
	t := Tier{name: name}
	switch {
	case isnil.Value(by):
		t.err = &reserve.ValueError{Package: "inbound", Name: "the limiters of tier " + name, Value: nil, Want: "limiters"}
		return t
	case key == nil:
		t.err = noKey(name)
		return t
	}
	local := keyhooks.Of[K](by)
	if local != nil {
		t.peek = peekFor(key, local.Peek)
	}
	t.reserve = func(ctx context.Context, r *http.Request, n int, maxWait time.Duration) (h keyhooks.Hold, err error) {
		var k K
		if k, err = key(r); err != nil {
			return
		}
		if local != nil {
			h, err = local.Hold(ctx, k, n, maxWait)
		} else {
			h.Reservation, err = by.ReserveWithin(ctx, k, n, maxWait)
		}
		return
	}
	return t.with(opts)
}

// peekFor finds the key of a request before it looks at the key's limiter.
func peekFor[K comparable](
	key func(*http.Request) (K, error), peek func(K, int) (time.Duration, error),
) func(*http.Request, int) (time.Duration, error) {
	return func(r *http.Request, n int) (time.Duration, error) {
		k, err := key(r)
		if err != nil {
			return 0, err
		}
		return peek(k, n)
	}
}

// outlook returns what the limiter of the tier had to give after a request got its permits, and false
// if that is not known.
func (t *Tier) outlook(h *keyhooks.Hold) (hooks.Outlook, bool) {
	if t.limiter != nil {
		return engine.Latest(t.limiter), true
	}
	return h.Outlook()
}

func noKey(name string) error {
	return &reserve.ValueError{Package: "inbound", Name: "the key of tier " + name, Value: nil, Want: "a function"}
}

func noPolicy(name string) error {
	return &reserve.ValueError{Package: "inbound", Name: "the policy of tier " + name, Value: nil, Want: "a policy"}
}

// A ReserverFunc finds a key's limiter, which must be the same at every call: a KeyedReserver
// as a function.
type ReserverFunc[K comparable] func(key K) (reserve.Reserver, error)

// ReserveWithin reserves from the key's limiter. If the function returns none, and no error, that
// is an error.
func (f ReserverFunc[K]) ReserveWithin(
	ctx context.Context, key K, n int, maxWait time.Duration,
) (reserve.Reservation, error) {
	by, err := f(key)
	if err == nil && isnil.Value(by) {
		err = &reserve.ValueError{Package: "inbound", Name: "the limiter of a key", Value: nil, Want: "a limiter or an error"}
	}
	if err != nil {
		return reserve.Reservation{}, err
	}
	return by.ReserveWithin(ctx, n, maxWait)
}

// ErrSkip is the error that a key function returns for a request to which its tier does not
// apply: an anonymous one, where the tier is per user.
var ErrSkip = errors.New("inbound: the tier does not apply")

// A TierOption changes one setting of a tier.
type TierOption func(*Tier) error

// DryRun lets all requests pass the tier and only counts those that it would have
// refused: to try a limit out. It does charge, as it would in earnest.
func DryRun() TierOption { return func(t *Tier) error { t.dryRun = true; return nil } }

// FailOpen lets requests pass the tier when it fails: its limiter returns an error
// other than a refusal (Redis is down, there are too many keys), or its key function does. Default:
// closed, such a request is answered with 503. Either way it is counted.
func FailOpen() TierOption { return func(t *Tier) error { t.failOpen = true; return nil } }

// Overload says that the tier protects the server, and is no client's quota: a
// refusal by it alone is answered with 503 and the problem type
// temporary-reduced-capacity. Default: 429 and quota-exceeded.
func Overload() TierOption { return func(t *Tier) error { t.overload = true; return nil } }

// Quota sets the tier's entry in RateLimit-Policy: so many requests (1 to 999999999999999) in a
// window (whole seconds). Default: the rate of the policy, if it is known; at 20/s that is 20 in
// 1 s, at 1000 an hour with a store for as many 1000 in 3600 s.
func Quota(requests int, window time.Duration) TierOption {
	return func(t *Tier) error {
		if requests < 1 || int64(requests) > maxInteger {
			return &reserve.ValueError{Package: "inbound", Name: "Quota", Value: requests, Want: "1 to 999999999999999 requests"}
		}
		if window < time.Second || window%time.Second != 0 {
			return &reserve.ValueError{Package: "inbound", Name: "Quota", Value: window, Want: "a window of whole seconds"}
		}
		t.quota = quota{requests: int64(requests), seconds: int64(window / time.Second)}
		return nil
	}
}

func (t Tier) with(opts []TierOption) Tier {
	for i, opt := range opts {
		err := noOption(i)
		if opt != nil {
			err = opt(&t)
		}
		if err != nil && t.err == nil {
			t.err = fmt.Errorf("inbound: tier %q: %w", t.name, err)
		}
	}
	return t
}

// noOption is the error of an option that is nil.
func noOption(i int) error {
	return &reserve.ValueError{Package: "inbound", Name: fmt.Sprint("option ", i+1), Value: nil, Want: "an option"}
}

// A quota is so many requests in a window.
type quota struct{ requests, seconds int64 }

// quotaOf describes a limiter by the time that fills its store, but at least 1 s
// and long enough for one permit. The store itself is not counted: a client that uses the quota of
// each window is then never refused.
func quotaOf(o hooks.Outlook) quota {
	const rounding = 1e-9 // of 1000/3600.0 * 3600
	if math.IsInf(o.Rate, 1) {
		return quota{}
	}
	seconds := math.Ceil(max(1, o.Capacity/o.Rate, 1/o.Rate) * (1 - rounding))
	requests := math.Floor(seconds * o.Rate * (1 + rounding))
	if !(seconds <= maxInteger && requests <= maxInteger) {
		return quota{}
	}
	return quota{requests: int64(requests), seconds: int64(seconds)}
}

// maxInteger is the largest Integer that a structured field can hold (RFC 9651, section 3.3.1).
const maxInteger = 999_999_999_999_999

// A TierError says which tier an error comes from.
type TierError struct {
	Tier string
	Err  error // a *reserve.WaitError, ErrQueueFull, or the failure of the tier
}

func (e *TierError) Error() string { return fmt.Sprintf("inbound: tier %q: %v", e.Tier, e.Err) }

// Unwrap returns Err.
func (e *TierError) Unwrap() error { return e.Err }

// ErrQueueFull is the reason of a refusal where the wait was short enough, but too
// many requests were waiting already.
var ErrQueueFull = errors.New("inbound: the queue is full")

// counters count requests at one tier of a middleware, by their outcome.
type counters struct{ refused, wouldRefuse, failed atomic.Uint64 }
