package inbound

import (
	"context"
	"errors"
	"hash/maphash"
	"net/http"
	"time"

	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/bykey"
	"github.com/nextfree/pace/reserve/internal/engine"
	"github.com/nextfree/pace/reserve/keyed"
)

// defaultMaxKeys takes some 110 MB for addresses, and 510 MB where another tier comes after it.
const defaultMaxKeys = 1 << 20

// PerKey limits the requests of each key apart, by limiters of the policy's, up to
// [MaxKeys] of them at a time. For the key function see [PerKeyBy].
//
// No client is refused because there are too many others, but some of them then share a limiter. As soon as three
// quarters of the room are taken, a /24 of IPv4 or a /48 of IPv6 gets no more than 1/4096 of it. A /16 or a /32 gets no
// more than 1/64. Further clients of such a network share one limiter in each /24 or /48. So an attacker with a whole
// /44 takes three quarters of the room, and takes nothing away from clients in other networks. When all room is taken,
// new clients everywhere share a limiter with their /24 or /48. When there are too many such limiters, they share one
// with others of 1024 groups of /16 and /32. Keys that are neither addresses nor a [Pair] with one share limiters in
// such groups, too.
//
// A key with a string longer than 64 bytes is remembered by its SHA-256, so a client can't fill the
// memory with long keys.
func PerKey[K comparable](
	name string, key func(*http.Request) (K, error), policy *reserve.Policy, opts ...TierOption,
) Tier {
	t := Tier{name: name, maxKeys: defaultMaxKeys}
	switch {
	case policy == nil:
		t.err = noPolicy(name)
		return t
	case key == nil:
		t.err = noKey(name)
		return t
	}
	t.quota = quotaOf((*engine.Limiter)(policy.Limiter()).Outlook()) // before the options, so that one can replace it
	t = t.with(opts)
	key = shortened(key)
	limiters := newSharedLimiters[K](policy, t.maxKeys)
	t.shared = limiters.shared.Load
	t.hash = hashOf(key)
	t.peek = peekFor(key, limiters.peek)
	t.reserve = func(
		ctx context.Context, r *http.Request, n int, maxWait time.Duration, used bool,
	) (taken bykey.Taken, err error) {
		var k K
		if k, err = key(r); err == nil {
			taken, err = limiters.take(ctx, k, n, maxWait, used)
		}
		return
	}
	return t
}

// MaxKeys sets for how many keys a [PerKey] tier has room at a time, 1 or more. A key whose limiter is full again needs
// none. A key of an address takes some 110 bytes. It takes some 490 until it is idle if another tier comes after this
// one, if its requests have to wait, or if its policy's limiters keep a list, as a window's do. Default: 1<<20.
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

// KeyedReserver has a limiter for each key, as a *keyed.Limiters[K] does.
type KeyedReserver[K comparable] interface {
	ReserveWithin(ctx context.Context, key K, n int, maxWait time.Duration) (reserve.Reservation, error)
}

// PerKeyBy limits the requests of each key apart, by limiters of one's own. These may have another policy for some
// keys, such as plans from a database (see package keyed), or be shared between machines. The key function may return
// [ErrSkip] or an [UnauthorizedError], and so may the policy function of a *keyed.Limiters. Any other error is a
// failure of the tier: see [FailOpen].
//
// The quota fields say each key's own policy, where its limiter is in this process. So they do for a *keyed.Limiters,
// and for a [ReserverFunc] that finds a *reserve.Limiter or what For of a *keyed.Limiters returns. A key without a
// limit, pace.Bursty(math.Inf(1)), is not in them.
//
// The limiters remember keys as the key function returns them. Return an error for a key that no
// user has, because clients may send very long ones.
func PerKeyBy[K comparable](
	name string, key func(*http.Request) (K, error), by KeyedReserver[K], opts ...TierOption,
) Tier {
	t := Tier{name: name}
	switch {
	case isnil.Value(by):
		t.err = valueError("the limiters of tier "+name, nil, "limiters")
		return t
	case key == nil:
		t.err = noKey(name)
		return t
	}
	t.hash = hashOf(key)
	from := limitersBy[K]{take: func(
		ctx context.Context, k K, n int, maxWait time.Duration, _ bool,
	) (taken bykey.Taken, err error) {
		taken.Reservation, err = by.ReserveWithin(ctx, k, n, maxWait)
		return
	}}
	if local, ok := by.(*keyed.Limiters[K]); ok {
		of := (*bykey.Limiters[K])(local)
		from = limitersBy[K]{take: of.Take, look: of.Outlook}
		t.peek = peekFor(key, of.Peek)
	} else if f, ok := by.(ReserverFunc[K]); ok {
		from = f.limiters()
	}
	if from.look != nil {
		t.look = func(r *http.Request) (o engine.Outlook, ok bool) {
			k, err := key(r)
			if err == nil {
				o, err = from.look(k)
			}
			return o, err == nil
		}
	}
	t.reserve = func(
		ctx context.Context, r *http.Request, n int, maxWait time.Duration, used bool,
	) (taken bykey.Taken, err error) {
		var k K
		if k, err = key(r); err == nil {
			taken, err = from.take(ctx, k, n, maxWait, used)
		}
		return
	}
	return t.with(opts)
}

// limitersBy is how a tier uses limiters by key. Look is nil if it isn't known what they have to give.
type limitersBy[K comparable] struct {
	take func(ctx context.Context, key K, n int, maxWait time.Duration, used bool) (bykey.Taken, error)
	look func(key K) (engine.Outlook, error)
}

// A ReserverFunc finds a key's limiter, which must be the same at every call: a KeyedReserver
// as a function.
type ReserverFunc[K comparable] func(key K) (reserve.Reserver, error)

// ReserveWithin reserves from the key's limiter. If the function returns none, and no error, that
// is an error.
func (f ReserverFunc[K]) ReserveWithin(
	ctx context.Context, key K, n int, maxWait time.Duration,
) (reserve.Reservation, error) {
	by, err := f.find(key)
	if err != nil {
		return reserve.Reservation{}, err
	}
	return by.ReserveWithin(ctx, n, maxWait)
}

func (f ReserverFunc[K]) find(key K) (reserve.Reserver, error) {
	by, err := f(key)
	if err == nil && isnil.Value(by) {
		err = valueError("the limiter of a key", nil, "a limiter or an error")
	}
	return by, err
}

// limiters returns how a tier uses the limiters that f finds.
func (f ReserverFunc[K]) limiters() limitersBy[K] {
	return limitersBy[K]{
		take: func(ctx context.Context, key K, n int, maxWait time.Duration, used bool) (bykey.Taken, error) {
			by, err := f.find(key)
			if err != nil {
				return bykey.Taken{}, err
			}
			return take(ctx, by, n, maxWait, used)
		},
		look: func(key K) (engine.Outlook, error) {
			by, err := f.find(key)
			if err != nil {
				return engine.Outlook{}, err
			}
			switch l := by.(type) {
			case *reserve.Limiter:
				return (*engine.Limiter)(l).Outlook(), nil
			case bykey.Key:
				return l.Outlook()
			}
			return engine.Outlook{}, errUnknown
		},
	}
}

// errUnknown is for a limiter that can't tell what it has to give.
var errUnknown = errors.New("inbound: unknown")

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

// hashOf returns a function that hashes a request's key; 0 if it has none.
func hashOf[K comparable](key func(*http.Request) (K, error)) func(*http.Request) uint64 {
	seed := maphash.MakeSeed()
	return func(r *http.Request) uint64 {
		k, err := key(r)
		if err != nil {
			return 0
		}
		return maphash.Comparable(seed, k) | 1
	}
}
