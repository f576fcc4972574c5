package inbound

import (
	"fmt"
	"net/http"
	"time"
)

// A TierOption changes one setting of a tier.
type TierOption func(*Tier) error

// DryRun lets all requests pass the tier, charges them as usual, and counts the requests that it would have refused.
func DryRun() TierOption { return func(t *Tier) error { t.dryRun = true; return nil } }

// FailOpen lets requests pass the tier when its key function or its limiter fails (Redis is down). Default: closed,
// they get 503. Either way they are counted.
func FailOpen() TierOption { return func(t *Tier) error { t.failOpen = true; return nil } }

// Overload says that the tier protects the server: a refusal by it alone is 503 with the problem type
// temporary-reduced-capacity. Default: 429 and quota-exceeded.
func Overload() TierOption { return func(t *Tier) error { t.overload = true; return nil } }

// Quota sets the tier's entry in RateLimit-Policy: requests (1 to 999999999999999) in a window of whole seconds.
// Default: the policy's rate. At 20/s that is 20 in 1 s; at 1000 an hour, with a store for as many, 1000 in 3600 s.
func Quota(requests int, window time.Duration) TierOption {
	return func(t *Tier) error {
		if requests < 1 || int64(requests) > maxInteger {
			return valueError("Quota", requests, "1 to 999999999999999 requests")
		}
		if window < time.Second || window%time.Second != 0 {
			return valueError("Quota", window, "a window of whole seconds")
		}
		t.quota = quota{requests: int64(requests), seconds: int64(window / time.Second)}
		return nil
	}
}

// Cost sets how many permits a request takes of this tier, instead of [WithCost]; 0 or less takes nothing. A request
// may cost 1 of "requests" and 200 of "rows".
func Cost(cost func(*http.Request) int) TierOption {
	return function("Cost", cost, func(t *Tier) { t.cost = cost })
}

// ChargeAfter charges a request by its answer: failed logins, or bytes. The request takes its cost beforehand (1, or
// [Cost], or [WithCost]). After the handler, the function says what it costs: the rest comes back, or the key's next
// requests pay for the excess. If the handler panics, its request pays its cost.
//
// With 5 failures in 15 minutes, of 100 attempts at one moment 5 reach the handler. The ResponseWriter is wrapped:
// see [Middleware.Handler].
func ChargeAfter(cost func(*http.Request, Response) int) TierOption {
	return function("ChargeAfter", cost, func(t *Tier) { t.after = cost })
}

func (t Tier) with(opts []TierOption) Tier {
	if err := apply(&t, opts); err != nil && t.err == nil {
		t.err = fmt.Errorf("inbound: tier %q: %w", t.name, err)
	}
	return t
}
