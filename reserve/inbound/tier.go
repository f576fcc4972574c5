package inbound

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/bykey"
	"github.com/nextfree/pace/reserve/internal/engine"
	"github.com/nextfree/pace/reserve/keyed"
)

// A Tier is one limit that a request has to pass: a name and a limiter, for all clients or for each key. Middlewares
// with the same Tier share its limiter. [New] reports a Tier's errors.
type Tier struct {
	name string
	// reserve takes a request's permits; used: in any case, if they are available now.
	reserve func(ctx context.Context, r *http.Request, n int, maxWait time.Duration, used bool) (bykey.Taken, error)
	limiter *reserve.Limiter // of a Global tier in this process
	rate    func() float64   // of a limiter that all clients share; nil if there is none, or it isn't known
	quota   quota            // of all keys; zero if it isn't known
	// peek returns how long a request would wait; nil if the limiter is not in this process.
	peek func(r *http.Request, n int) (time.Duration, error)
	// look returns what the limiter of the key has to give; nil if all keys have one policy.
	look func(r *http.Request) (engine.Outlook, bool)
	// hash is for the key's part of the queue; nil without keys.
	hash func(r *http.Request) uint64

	maxKeys int           // of a PerKey tier
	shared  func() uint64 // of a PerKey tier: see TierStats

	cost     func(*http.Request) int // nil: the middleware's
	after    func(*http.Request, Response) int
	dryRun   bool
	failOpen bool
	overload bool
	err      error
}

// Global limits all requests together, by a limiter of the policy.
func Global(name string, policy *reserve.Policy, opts ...TierOption) Tier {
	if policy == nil {
		return bad(name, "policy", "a policy")
	}
	return GlobalBy(name, policy.Limiter(), opts...)
}

// GlobalBy limits all requests together, by a limiter that is used elsewhere too, or is shared between machines.
func GlobalBy(name string, by reserve.Reserver, opts ...TierOption) Tier {
	if isnil.Value(by) {
		return bad(name, "limiter", "a limiter")
	}
	t := Tier{name: name}
	t.reserve = func(
		ctx context.Context, _ *http.Request, n int, maxWait time.Duration, used bool,
	) (bykey.Taken, error) {
		return take(ctx, by, n, maxWait, used)
	}
	if l, ok := by.(interface{ Rate() float64 }); ok {
		t.rate = l.Rate
	}
	if l, ok := by.(*reserve.Limiter); ok {
		t.limiter, t.quota = l, quotaOf((*engine.Limiter)(l).Outlook())
		t.peek = func(_ *http.Request, n int) (time.Duration, error) { return l.Peek(n) }
	}
	return t.with(opts)
}

func take(
	ctx context.Context, by reserve.Reserver, n int, maxWait time.Duration, used bool,
) (t bykey.Taken, err error) {
	if l, ok := by.(bykey.Key); ok {
		return l.Take(ctx, n, maxWait, used)
	}
	t.Reservation, err = by.ReserveWithin(ctx, n, maxWait)
	return
}

func (t *Tier) outlook(c *claim) (engine.Outlook, bool) {
	if t.limiter != nil {
		return (*engine.Limiter)(t.limiter).Latest(), true
	}
	return c.Outlook()
}

func (t *Tier) quotaByKey() bool { return t.look != nil && t.quota == quota{} }

func bad(name, what, want string) Tier {
	return Tier{name: name, err: valueError("the "+what+" of tier "+name, nil, want)}
}

// A TierError says which tier an error comes from.
type TierError struct {
	Tier string
	// Err is a *reserve.WaitError, a *reserve.SizeError, ErrQueueFull, an *UnauthorizedError, or the tier's failure.
	Err error
}

func (e *TierError) Error() string { return fmt.Sprintf("inbound: tier %q: %v", e.Tier, e.Err) }

// Unwrap returns Err.
func (e *TierError) Unwrap() error { return e.Err }

// ErrSkip is the error of a key function for a request that its tier lets pass: an anonymous request at a tier per
// user.
var ErrSkip = errors.New("inbound: the tier does not apply")

// An UnauthorizedError is the error of a key function, or of the policy function of limiters by key, for a request
// without valid credentials. The answer is 401, and takes no permits. [FailOpen] does not let it pass, but [DryRun]
// does. It is [keyed.ErrUnknown]: limiters by key forget the key.
type UnauthorizedError struct {
	// Challenge is the value of WWW-Authenticate (RFC 9110, section 11.6.1): `Basic realm="api"`. Default: Bearer.
	Challenge string
}

func (e *UnauthorizedError) Error() string { return "inbound: no valid credentials" }

// Is reports whether the target is [keyed.ErrUnknown].
func (e *UnauthorizedError) Is(target error) bool { return target == keyed.ErrUnknown }

func isUnauthorized(err error) bool {
	_, ok := unauthorized(err)
	return ok
}

func unauthorized(err error) (challenge string, ok bool) {
	var e *UnauthorizedError
	if errors.As(err, &e) && e.Challenge != "" {
		return e.Challenge, true
	}
	return "Bearer", e != nil || errors.Is(err, keyed.ErrUnknown)
}
