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

// A Tier is one of the limits that a request has to pass: a name and a limiter, for all clients or for each key. Make
// it with [Global], [GlobalBy], [PerKey] or [PerKeyBy]. [New] reports what is wrong with it. A Tier may be used in
// several middlewares, which then share its limiter.
type Tier struct {
	name string
	// reserve takes a request's permits. Used says that they are used in any case, if they are available now.
	reserve func(ctx context.Context, r *http.Request, n int, maxWait time.Duration, used bool) (bykey.Taken, error)
	limiter *reserve.Limiter // of a Global tier in this process
	rate    func() float64   // of a limiter that all clients share; nil if there is none, or it isn't known
	quota   quota            // of all keys; zero if it isn't known
	// peek returns how long a request would wait, and takes nothing; nil if the limiter is not in this
	// process.
	peek func(r *http.Request, n int) (time.Duration, error)
	// look returns what the limiter of the request's key has to give now, if that is known. It is nil if the policy is the
	// same for all keys.
	look func(r *http.Request) (engine.Outlook, bool)
	// hash returns a hash of the request's key, for its share of the queue; nil if there are no keys.
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
		t.err = valueError("the limiter of tier "+name, nil, "a limiter")
		return t
	}
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

// take takes permits of a limiter.
func take(
	ctx context.Context, by reserve.Reserver, n int, maxWait time.Duration, used bool,
) (t bykey.Taken, err error) {
	if l, ok := by.(bykey.Key); ok {
		return l.Take(ctx, n, maxWait, used)
	}
	t.Reservation, err = by.ReserveWithin(ctx, n, maxWait)
	return
}

// outlook returns what the limiter of the tier had to give after a request got its permits, and false
// if that is not known.
func (t *Tier) outlook(c *claim) (engine.Outlook, bool) {
	if t.limiter != nil {
		return (*engine.Limiter)(t.limiter).Latest(), true
	}
	return c.Outlook()
}

// quotaByKey reports whether keys may have different quotas.
func (t *Tier) quotaByKey() bool { return t.look != nil && t.quota == quota{} }

func noKey(name string) error {
	return valueError("the key of tier "+name, nil, "a function")
}

func noPolicy(name string) error {
	return valueError("the policy of tier "+name, nil, "a policy")
}

// A TierError says which tier an error comes from.
type TierError struct {
	Tier string
	// Err is a *reserve.WaitError or *reserve.SizeError, ErrQueueFull, an *UnauthorizedError, or the failure of
	// the tier.
	Err error
}

func (e *TierError) Error() string { return fmt.Sprintf("inbound: tier %q: %v", e.Tier, e.Err) }

// Unwrap returns Err.
func (e *TierError) Unwrap() error { return e.Err }

// ErrSkip is the error that a key function returns for a request to which its tier does not apply. Where the tier is
// per user, that may be an anonymous request.
var ErrSkip = errors.New("inbound: the tier does not apply")

// An UnauthorizedError is the error that a key function, or the policy function of limiters by key, returns for a
// request without valid credentials. It has no API key, or an unknown one. The request is answered with 401, the tiers
// behind are not asked, and no permits are taken. It is no failure of the tier: [FailOpen] does not let it pass, but
// [DryRun] does.
//
// It is [keyed.ErrUnknown]: limiters by key forget a key for which their policy function returns it. A policy
// function may return that one in its place, for the challenge Bearer.
//
// An unknown key is not remembered, so a policy function that asks a database is called for each of
// its requests. Where that matters, check credentials in a handler around the middleware.
type UnauthorizedError struct {
	// Challenge is the value of WWW-Authenticate, which a 401 must have (RFC 9110, section 11.6.1):
	// `Basic realm="api"`. Default: Bearer.
	Challenge string
}

func (e *UnauthorizedError) Error() string { return "inbound: no valid credentials" }

// Is reports whether the target is [keyed.ErrUnknown]: a policy function that returns an UnauthorizedError
// does not know the key.
func (e *UnauthorizedError) Is(target error) bool { return target == keyed.ErrUnknown }

func isUnauthorized(err error) bool {
	_, ok := unauthorized(err)
	return ok
}

// unauthorized returns the challenge for a request without valid credentials, and whether the error is of one.
func unauthorized(err error) (challenge string, ok bool) {
	var e *UnauthorizedError
	if errors.As(err, &e) && e.Challenge != "" {
		return e.Challenge, true
	}
	return "Bearer", e != nil || errors.Is(err, keyed.ErrUnknown)
}
