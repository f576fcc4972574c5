package keyed

import (
	"context"
	"iter"
	"time"

	"github.com/nextfree/pace/internal/bykey"
	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/reserve"
)

var valueError = invalid.In("keyed")

// ErrTooManyKeys is returned for a new key when [WithMaxKeys] keys are remembered and none that was looked at can be
// dropped.
var ErrTooManyKeys = bykey.ErrTooManyKeys

// ErrUnknown is for the policy function to return, or wrap, for a key that does not exist: a deleted tenant, a revoked
// API key. A remembered key is then forgotten ([Limiters.Forget]), and its callers get the error.
var ErrUnknown = bykey.ErrUnknown

// Limiters has a limiter for each key. [New] makes it. It must not be copied. All methods may be called at the same
// time.
//
// Keys are compared with ==: a NaN is a new key each time. A key of an interface type whose value can't be compared
// panics, as in a map.
type Limiters[K comparable] bykey.Limiters[K]

func (k *Limiters[K]) keys() *bykey.Limiters[K] { return (*bykey.Limiters[K])(k) }

// An Option changes a setting of [New], which panics with its error.
type Option func(*settings) error

type settings struct {
	maxKeys int
	ttl     time.Duration
}

// WithMaxKeys sets how many keys are remembered at most; a new key beyond that is refused with [ErrTooManyKeys].
// Default: 1<<20, some 90 MB. With 0 or less, every key is refused. Only [reserve.Reservation.Settle] goes past it, if
// its key was dropped.
func WithMaxKeys(n int) Option {
	return func(s *settings) error { s.maxKeys = n; return nil }
}

// WithTTL sets how long the policy function's answer for a key is good: between 31/32 of d and d. Default, and for 0 or
// less: until the key is dropped.
//
// After d, the first caller calls the function, as [Limiters.Refresh] does; the others go on with the old policy. After
// an error the function is called again an eighth of d later.
//
// A key is remembered for d even when it is like new, unless a new key needs its room: at 1000 keys a second,
// WithTTL(time.Minute) keeps 60,000 keys, some 5 MB.
func WithTTL(d time.Duration) Option {
	return func(s *settings) error { s.ttl = d; return nil }
}

// New returns limiters whose policies come from the function. The first caller for a new key calls it; other callers
// for that key wait, and get its error, too, which is not remembered.
//
// The function is called under no lock, and may ask for other keys, but not for the same key, nor for a key whose
// policy asks for this key. Make policies once and return them many times. With policies on a clock of their own
// ([reserve.WithClock]) keys count as idle since the first was made.
//
// It panics if the function or an option is nil.
func New[K comparable](policy func(key K) (*reserve.Policy, error), opts ...Option) *Limiters[K] {
	notNil(policy == nil, "policy", "a function")
	s := settings{maxKeys: 1 << 20}
	for _, opt := range opts {
		notNil(opt == nil, "an option", "an option")
		if err := opt(&s); err != nil {
			panic(err)
		}
	}
	return (*Limiters[K])(bykey.New(bykey.Settings[K]{Policy: policy, MaxKeys: s.maxKeys, TTL: s.ttl}))
}

func notNil(isNil bool, name, want string) {
	if isNil {
		panic(valueError(name, nil, want))
	}
}

// TryAcquire takes n permits of the key (at least 1) if they may be used now, and reports whether it did.
// [Limiters.ReserveWithin] tells a policy's error or a lack of room. For a remembered key it neither blocks nor
// allocates.
func (k *Limiters[K]) TryAcquire(key K, n int) (ok bool) { return k.keys().TryAcquire(key, n) }

// Acquire is [reserve.Limiter.Acquire] of the key's limiter. It has its errors, the policy function's and
// [ErrTooManyKeys]. For a remembered key that need not wait it does not allocate.
func (k *Limiters[K]) Acquire(ctx context.Context, key K, n int) (waited time.Duration, err error) {
	return k.keys().Acquire(ctx, key, n)
}

// ReserveWithin is [reserve.Limiter.ReserveWithin] of the key's limiter. It has Acquire's errors. Settle charges the
// key even after it was dropped.
func (k *Limiters[K]) ReserveWithin(
	ctx context.Context, key K, n int, maxWait time.Duration,
) (r reserve.Reservation, err error) {
	return k.keys().ReserveWithin(ctx, key, n, maxWait)
}

// Peek is [reserve.Limiter.Peek] of the key's limiter. It has Acquire's errors.
func (k *Limiters[K]) Peek(key K, n int) (wait time.Duration, err error) {
	return k.keys().Peek(key, n)
}

// Snapshot is [reserve.Limiter.Snapshot] of the key's limiter. The counts of a key without reservations, or that was
// dropped, are 0. It has Acquire's errors.
func (k *Limiters[K]) Snapshot(key K) (reserve.Snapshot, error) { return k.keys().Snapshot(key) }

// Len returns how many keys are remembered now.
func (k *Limiters[K]) Len() int { return k.keys().Len() }

// Refresh asks the policy function for the key's policy again, and uses it at once, by [reserve.Limiter.SetPolicy]. A
// key with 1/s and WithCapacity(10) that has 5 left, refreshed to 100/s and WithCapacity(1000), has 5.
//
// A policy of another kind (a window instead of a bursty limiter) takes over when the last promised time has come, with
// the same share of its store left. A key that isn't remembered stays as it is.
//
// It returns the policy function's error: the key then keeps its policy, or is forgotten if that is [ErrUnknown].
func (k *Limiters[K]) Refresh(key K) error { return k.keys().Refresh(key) }

// Forget drops the key's state, and what it owes: its next request finds a new key, with the policy that the function
// then returns. Waiting requests keep their times.
func (k *Limiters[K]) Forget(key K) { k.keys().Forget(key) }

// Keys returns the remembered keys, in no order, a shard's (on average at most 4096) at a time. Keys that are new or
// dropped during the loop may be missing. The loop's body may use the limiters, and drop keys.
func (k *Limiters[K]) Keys() iter.Seq[K] { return k.keys().Keys() }

// For returns the key's limiter, which keeps no key from being dropped. It is a [Limiter], by a type assertion.
func (k *Limiters[K]) For(key K) reserve.Reserver { return k.keys().For(key) }

// A Limiter is a key's limiter, as [Limiters.For] returns it. Its methods mean what [reserve.Limiter]'s do, and may be
// called at the same time.
//
// Rate, Stored and NextFree remember no key (without [WithTTL]), and are 0 if there is no policy or no room for it.
// PauseUntil, SetRate and Retime do. Without a policy or room, SetRate and Retime return that error, and PauseUntil
// does nothing.
type Limiter interface {
	reserve.Reserver
	Acquire(ctx context.Context, n int) (waited time.Duration, err error)
	TryAcquire(n int) bool
	Rate() (permitsPerSecond float64)
	SetRate(permitsPerSecond float64) error
	Retime(permitsPerSecond float64) error
	Stored() (permits float64)
	NextFree() time.Time
	PauseUntil(t time.Time)
	Resume()
}
