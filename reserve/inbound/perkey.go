package inbound

import (
	"context"
	"hash/maphash"
	"net/http"
	"time"

	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/bykey"
	"github.com/nextfree/pace/reserve/internal/engine"
	"github.com/nextfree/pace/reserve/keyed"
)

const defaultMaxKeys = 1 << 20

// PerKey limits the requests of each key apart, by limiters of the policy, up to [MaxKeys] at a time. For the key
// function see [PerKeyBy]. A string longer than 64 bytes in a key is remembered by its SHA-256.
//
// A full tier refuses no client. Once three quarters of the room are taken, a /24 or /48 gets at most 1/4096 of it,
// a /16 or /32 at most 1/64. Further clients there share a limiter with their /24 or /48: an attacker with a /44
// takes nothing from other networks. When all room is taken, new clients everywhere do. Keys without an address
// share one of 1024 limiters then.
func PerKey[K comparable](
	name string, key func(*http.Request) (K, error), policy *reserve.Policy, opts ...TierOption,
) Tier {
	switch {
	case policy == nil:
		return bad(name, "policy", "a policy")
	case key == nil:
		return bad(name, "key", "a function")
	}
	t := Tier{name: name, maxKeys: defaultMaxKeys, quota: quotaOf((*engine.Limiter)(policy.Limiter()).Outlook())}
	t = t.with(opts)
	limiters := newSharedLimiters[K](policy, t.maxKeys)
	t.shared = limiters.shared.Load
	return withKey(t, shortened(key), limitersBy[K]{take: limiters.take, peek: limiters.peek})
}

// MaxKeys sets for how many keys a [PerKey] tier has room, 1 or more. A key whose limiter is full again needs none.
// An address takes some 110 bytes, and some 490 while a later tier, a wait or a window needs its limiter. Default:
// 1<<20.
func MaxKeys(n int) TierOption {
	return func(t *Tier) error {
		if n < 1 {
			return valueError("MaxKeys", n, "at least 1 key")
		}
		if t.maxKeys == 0 {
			return valueError("MaxKeys", n, "a tier from PerKey")
		}
		t.maxKeys = n
		return nil
	}
}

// KeyedReserver has a limiter for each key: *keyed.Limiters[K], for example.
type KeyedReserver[K comparable] interface {
	ReserveWithin(ctx context.Context, key K, n int, maxWait time.Duration) (reserve.Reservation, error)
}

// PerKeyBy limits the requests of each key apart, by limiters of your own: with a policy for each key (package
// keyed), or shared between machines. The key function may return [ErrSkip] or an [UnauthorizedError], and so may
// the policy function of *keyed.Limiters. Another error is a failure of the tier: see [FailOpen]. Return an error
// for a key that no user has: clients may send very long keys. The quota fields need *keyed.Limiters.
func PerKeyBy[K comparable](
	name string, key func(*http.Request) (K, error), by KeyedReserver[K], opts ...TierOption,
) Tier {
	switch {
	case isnil.Value(by):
		return bad(name, "limiters", "limiters")
	case key == nil:
		return bad(name, "key", "a function")
	}
	from := limitersBy[K]{take: func(
		ctx context.Context, k K, n int, maxWait time.Duration, _ bool,
	) (taken bykey.Taken, err error) {
		taken.Reservation, err = by.ReserveWithin(ctx, k, n, maxWait)
		return
	}}
	if local, ok := by.(*keyed.Limiters[K]); ok {
		of := (*bykey.Limiters[K])(local)
		from = limitersBy[K]{take: of.Take, peek: of.Peek, look: of.Outlook}
	}
	return withKey(Tier{name: name}.with(opts), key, from)
}

// limitersBy is how a tier uses limiters by key. Peek and look may be nil.
type limitersBy[K comparable] struct {
	take func(ctx context.Context, key K, n int, maxWait time.Duration, used bool) (bykey.Taken, error)
	peek func(key K, n int) (time.Duration, error)
	look func(key K) (engine.Outlook, error)
}

func withKey[K comparable](t Tier, key func(*http.Request) (K, error), by limitersBy[K]) Tier {
	t.reserve = func(
		ctx context.Context, r *http.Request, n int, maxWait time.Duration, used bool,
	) (taken bykey.Taken, err error) {
		var k K
		if k, err = key(r); err == nil {
			taken, err = by.take(ctx, k, n, maxWait, used)
		}
		return
	}
	if by.peek != nil {
		t.peek = func(r *http.Request, n int) (time.Duration, error) {
			k, err := key(r)
			if err != nil {
				return 0, err
			}
			return by.peek(k, n)
		}
	}
	if by.look != nil {
		t.look = func(r *http.Request) (o engine.Outlook, ok bool) {
			k, err := key(r)
			if err == nil {
				o, err = by.look(k)
			}
			return o, err == nil
		}
	}
	seed := maphash.MakeSeed()
	t.hash = func(r *http.Request) uint64 {
		k, err := key(r)
		if err != nil {
			return 0
		}
		return maphash.Comparable(seed, k) | 1
	}
	return t
}
