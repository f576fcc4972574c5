package inbound

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
)

// A Tier is one limit that a request has to pass. Middlewares with the same Tier share its limiter. [New] reports a
// Tier's errors.
type Tier struct {
	tierSettings
	name string
	err  error

	find    func(*http.Request) (which, error)
	all     limit.Limit // of all requests; nil: find tells
	clients *clients    // of a PerKey tier
}

type which struct {
	by     limit.Limit // nil: the client's, at a PerKey tier
	client client
}

// Global limits all requests together, by a new limiter of the policy.
func Global(name string, policy *reserve.Policy, opts ...TierOption) Tier {
	if policy == nil {
		return bad(name, "policy", "a policy")
	}
	return GlobalBy(name, policy.Limiter(), opts...)
}

// GlobalBy limits all requests together, by a limiter that is used elsewhere too, here or on other machines.
func GlobalBy(name string, by reserve.Reserver, opts ...TierOption) Tier {
	if isnil.Value(by) {
		return bad(name, "limiter", "a limiter")
	}
	all := limit.Of(by)
	t := Tier{name: name, all: all, find: func(*http.Request) (which, error) { return which{by: all}, nil }}
	if o, known := all.Outlook(); known {
		t.quota = quotaOf(o)
	}
	return t.with(opts)
}

// PerKey limits the requests of each key (see [PerKeyBy]) apart, by limiters of the policy, up to [MaxKeys] at a time.
// A key is remembered by a hash of 64 bits.
//
// A full tier refuses no client: new clients then share one of 16384 limiters, chosen by a hash of their /24 or /48, or
// of a key without an address. Once three quarters of the room are taken, so do further clients of a /24 or /48 that
// has 1/4096 of it, or of a /16 or /32 that has 1/64.
func PerKey[K comparable](
	name string, key func(*http.Request) (K, error), policy *reserve.Policy, opts ...TierOption,
) Tier {
	switch {
	case policy == nil:
		return bad(name, "policy", "a policy")
	case key == nil:
		return bad(name, "key", "a function")
	}
	t := Tier{name: name}
	t.maxKeys, t.quota = defaultMaxKeys, quotaOf((*engine.Limiter)(policy.Limiter()).Outlook())
	t = t.with(opts)
	t.clients = newClients(policy, t.maxKeys)
	identify := identifier(key)
	t.find = func(r *http.Request) (w which, err error) {
		_, w.client, err = identify(r)
		return w, err
	}
	return t
}

// PerKeyBy limits the requests of each key apart, by limiters of your own: *keyed.Limiters[K], with a policy for each
// key, or limiters that are shared between machines. The key function, and the policy function of *keyed.Limiters, may
// return [ErrSkip] or an [UnauthorizedError]; another error is a failure of the tier: see [FailOpen]. The quota fields
// need *keyed.Limiters.
func PerKeyBy[K comparable](
	name string, key func(*http.Request) (K, error), by interface{ For(key K) reserve.Reserver }, opts ...TierOption,
) Tier {
	switch {
	case isnil.Value(by):
		return bad(name, "limiters", "limiters")
	case key == nil:
		return bad(name, "key", "a function")
	}
	identify := identifier(key)
	return Tier{name: name, find: func(r *http.Request) (w which, err error) {
		var k K
		if k, w.client, err = identify(r); err == nil {
			w.by = limit.Of(by.For(k))
		}
		return w, err
	}}.with(opts)
}

func bad(name, what, want string) Tier {
	return Tier{name: name, err: valueError("the "+what+" of tier "+name, nil, want)}
}

func (t Tier) with(opts []TierOption) Tier {
	if err := invalid.Apply(valueError, &t.tierSettings, opts); err != nil {
		t.err = fmt.Errorf("inbound: tier %q: %w", t.name, err)
	}
	return t
}

// take reserves; used: the permits are used in any case, if available.
func (t *Tier) take(
	ctx context.Context, w which, n int, maxWait time.Duration, used bool,
) (taken limit.Taken, err error) {
	if w.by == nil {
		return t.clients.take(ctx, w.client, n, maxWait, used)
	}
	return w.by.Take(ctx, n, maxWait, used)
}

func (t *Tier) peek(w which, n int) (wait time.Duration, ok bool) {
	var err error
	switch {
	case w.by == nil:
		wait, err = t.clients.peek(w.client, n)
	case w.by.Traits().Silent:
		return 0, false
	default:
		wait, err = w.by.Peek(n)
	}
	if err != nil {
		return waitOf(err)
	}
	return wait, true
}

func (c *claim) outlook() (o engine.Outlook, ok bool) {
	if o, ok = c.Outlook(); ok || c.by == nil {
		return o, ok
	}
	return c.by.Outlook()
}

// interval is the time in which the limiter of all requests lets a request of that cost pass; 0: unknown.
func (t *Tier) interval(cost int) time.Duration {
	if t.all != nil && t.all.Rate() > 0 {
		return seconds(float64(cost) / t.all.Rate())
	}
	return 0
}

type TierError struct {
	Tier string
	// Err is a *reserve.WaitError, a *reserve.SizeError, ErrQueueFull, an *UnauthorizedError, or the tier's failure.
	Err error
}

func (e *TierError) Error() string { return fmt.Sprintf("inbound: tier %q: %v", e.Tier, e.Err) }

func (e *TierError) Unwrap() error { return e.Err }

// ErrSkip is the error of a key function for a request that its tier lets pass: an anonymous request at a tier per
// user.
var ErrSkip = errors.New("inbound: the tier does not apply")

// An UnauthorizedError is the error of a key function, or of the policy function of *keyed.Limiters, for a request
// without valid credentials. The answer is 401 and takes no permits. [DryRun] lets the request pass, and [FailOpen]
// does not. It is [keyed.ErrUnknown]: the limiters forget the key.
type UnauthorizedError struct {
	// Challenge is the value of WWW-Authenticate (RFC 9110, section 11.6.1): `Basic realm="api"`. Default: Bearer.
	Challenge string
}

func (e *UnauthorizedError) Error() string { return "inbound: no valid credentials" }

func (e *UnauthorizedError) Is(target error) bool { return target == keyed.ErrUnknown }

func unauthorized(err error) (challenge string, ok bool) {
	var e *UnauthorizedError
	if errors.As(err, &e) && e.Challenge != "" {
		return e.Challenge, true
	}
	return "Bearer", e != nil || errors.Is(err, keyed.ErrUnknown)
}
