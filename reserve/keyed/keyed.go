package keyed

import (
	"context"
	"errors"
	"hash/maphash"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
	"github.com/nextfree/pace/reserve/internal/keyhooks"
)

// valueError makes the error for a bad value.
var valueError = invalid.In("keyed")

// ErrTooManyKeys is returned for a new key when as many as [WithMaxKeys] says are
// remembered and none of those looked at can be dropped. Nothing was taken.
var ErrTooManyKeys = errors.New("keyed: too many keys")

// ErrUnknown is for the policy function to return, or to wrap, for a key that it does not know: a deleted tenant, a
// revoked API key. It is an answer, and not a failure to find one. So a remembered key does not keep its policy. It is
// forgotten, as by [Limiters.Forget], and its callers get the error.
var ErrUnknown = errors.New("keyed: unknown key")

// Limiters is a limiter for each key. Make it with [New]. It must not be copied. All methods may be called at the same
// time.
//
// Keys are compared with ==, so a NaN is a new key each time. A key of an interface type whose value can't be compared
// panics, as it does in a map.
type Limiters[K comparable] struct {
	hidden[K]
	policy   func(K) (*reserve.Policy, error)
	guard    keyhooks.Guard[K] // nil if all keys are welcome
	refused  atomic.Uint32     // by the guard
	always   *reserve.Policy   // of all keys; nil: the function is asked
	own      func(K) K         // how a new key is stored; nil: as it is
	seed     maphash.Seed
	begin    time.Time
	ownBegin atomic.Pointer[time.Time] // on the policies' own clock; nil until a policy was seen
	maxKeys  int64
	perTick  int64         // a part of the policies' time to live, in nanoseconds; 0: they have none
	keys     atomic.Int64  // remembered in all shards
	asking   atomic.Int64  // whose policy is being asked for
	turn     atomic.Uint32 // of the shard that is swept next
	shards   []shard[K]
}

// hidden embeds the Door under a name that is not exported.
type hidden[K comparable] = keyhooks.Door[K]

// An Option changes a setting of [New].
type Option func(*settings)

type settings struct {
	maxKeys int
	ttl     time.Duration
}

// WithMaxKeys sets how many keys are remembered at most. Past it a new key is refused with
// [ErrTooManyKeys]. Default: 1<<20, that is some 90 MB. With 0 or less, every key is refused.
//
// One thing goes past it: a charge by [reserve.Reservation.Settle] to a key that has been dropped
// since, because no debt is forgotten.
func WithMaxKeys(n int) Option {
	return func(s *settings) { s.maxKeys = n }
}

// WithTTL sets how long the policy function's answer for a key is good. So a plan that has changed reaches a client
// that keeps asking within d. An answer is used for between 31/32 of d and d. Use [Limiters.Refresh] where the program
// knows that a plan has changed. Default: the answer is good until the key is dropped. 0 or less means the same.
//
// When d is over, the first caller calls the function, and the others go on with the old policy
// meanwhile. What the key owes stays owed, and stored permits scale, as with Refresh. If the
// function returns an error, the key keeps its policy, and the function is called again an eighth of
// d later. If the error is [ErrUnknown], the key is forgotten.
//
// The function is called at most once in d for a key. So a key is remembered for d even when it is like new, unless a
// new key needs its room. At 1000 keys a second, WithTTL(time.Minute) keeps 60,000 keys, some 5 MB.
func WithTTL(d time.Duration) Option {
	return func(s *settings) { s.ttl = d }
}

// New returns limiters whose policies come from the function. It is called by the first caller that asks for a key of
// which nothing is remembered. Other callers for that key wait for the result. Its answer is used until the key is
// dropped, or [Limiters.Refresh], [Limiters.Forget] or [WithTTL] ends that. Its error goes to all callers that waited
// for it, and is not remembered.
//
// The function is called under no lock. It may take its time, and ask for other keys, but not for the same key, nor for
// one whose policy asks for this one. Make policies once and return them many times. Keys of one policy share all but
// their memory. A key that has another policy after Refresh takes some 220 bytes more.
//
// A key's limiter is taken to exist since New was called. So a bursty one is empty then, unless its
// policy says otherwise, and full a burst later, whenever its key is first seen. With a
// clock of the policies' own ([reserve.WithClock]), which New can't read, a limiter counts as idle since the first
// policy that the function returned was made.
//
// It panics if the function or an option is nil.
func New[K comparable](policy func(key K) (*reserve.Policy, error), opts ...Option) *Limiters[K] {
	notNil(policy == nil, "policy", "a function")
	s := settings{maxKeys: 1 << 20}
	for _, opt := range opts {
		notNil(opt == nil, "an option", "an option")
		opt(&s)
	}
	k := &Limiters[K]{
		policy:  policy,
		seed:    maphash.MakeSeed(),
		begin:   time.Now(),
		maxKeys: int64(s.maxKeys),
		shards:  make([]shard[K], shardsFor(s.maxKeys)),
	}
	if s.ttl > 0 {
		k.perTick = max(1, int64(s.ttl/ticks))
	}
	k.hidden = keyhooks.NewDoor(inside[K]{k})
	return k
}

// notNil panics if what a constructor was given is nil.
func notNil(isNil bool, name, want string) {
	if isNil {
		panic(valueError(name, nil, want))
	}
}

// shardsFor returns the number of shards, a power of two. Each has some 4096 keys or fewer. A table of that size grows
// in some 50 us, for which the caller that inserts the key waits. There are at least 16, so that 8 goroutines seldom
// meet, and at most 1024, which are 128 KB.
func shardsFor(maxKeys int) int {
	return 1 << bits.Len(uint(min(max(maxKeys/4096, 16), 1024))-1)
}

// TryAcquire takes n permits of the key (at least 1) if they may be used now, and reports whether it did. For a key
// that is not remembered, false may also mean that there is no policy for it, or no room. [Limiters.ReserveWithin]
// tells. For a remembered key it neither blocks nor allocates.
func (k *Limiters[K]) TryAcquire(key K, n int) (ok bool) {
	err := k.with(context.Background(), key, func(e *entry[K]) {
		if e.limiter == nil {
			ok = e.compact.tryAcquire(e.policy, n)
		} else {
			ok = e.limiter.TryAcquire(n)
		}
	})
	return ok && err == nil
}

// Acquire waits for n permits of the key (at least 1), and returns how long that took. It
// is [reserve.Limiter.Acquire] of the key's limiter, and has its errors, the policy function's
// and [ErrTooManyKeys]. Where it need not wait, and the key is remembered, it does not allocate.
func (k *Limiters[K]) Acquire(ctx context.Context, key K, n int) (waited time.Duration, err error) {
	var r *reserve.Reservation // nil where nothing has to be waited for
	asked := k.with(ctx, key, func(e *entry[K]) {
		var had bool
		if had, err = e.acquire(ctx, n); had || err != nil {
			return
		}
		held, refused := e.reserve(ctx, n, reserve.Forever)
		r, err = &held, refused
	})
	if asked != nil {
		return 0, asked
	}
	if err != nil || r == nil {
		return 0, err
	}
	return (*engine.Reservation)(r).Await(ctx)
}

// acquire takes permits that are available now, and reports whether it did.
func (e *entry[K]) acquire(ctx context.Context, n int) (had bool, err error) {
	if e.limiter == nil {
		_, had, err = e.compact.acquire(ctx, e.policy, n)
		return had, err
	}
	_, err = e.limiter.ReserveWithin(ctx, n, 0)
	return err == nil, nil // the reservation that follows has the error
}

// ReserveWithin reserves n permits of the key (at least 1), if they may be used
// within maxWait. It is [reserve.Limiter.ReserveWithin] of the key's limiter, and has its
// errors, the policy function's and [ErrTooManyKeys].
//
// The key is remembered until the reservation's time has come and the key is like new again. Cancel
// after that gives nothing back: the store is full anyway. A charge
// by Settle after that is charged to the key.
func (k *Limiters[K]) ReserveWithin(
	ctx context.Context, key K, n int, maxWait time.Duration,
) (r reserve.Reservation, err error) {
	asked := k.with(ctx, key, func(e *entry[K]) { r, err = e.reserve(ctx, n, maxWait) })
	if asked != nil {
		err = asked
	}
	return
}

// Peek returns how long a request for n permits of the key (at least 1), made now, would wait. It
// takes nothing. It returns a *[reserve.SizeError] if the key's limiter never grants as many, the
// policy function's error, and [ErrTooManyKeys].
func (k *Limiters[K]) Peek(key K, n int) (wait time.Duration, err error) {
	asked := k.with(context.Background(), key, func(e *entry[K]) {
		if e.limiter == nil {
			wait = e.compact.wait(e.policy, n)
		} else {
			wait, err = e.limiter.Peek(n)
		}
	})
	if asked != nil {
		err = asked
	}
	return wait, err
}

// Len returns how many keys are remembered now.
func (k *Limiters[K]) Len() int { return int(k.keys.Load()) }

// reserve reserves permits of the entry's limiter.
func (e *entry[K]) reserve(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error) {
	if e.limiter == nil {
		// A refused request, and under load there are many, costs no memory.
		if err := (*engine.Policy)(e.policy).Check(ctx, &e.compact.state, n, maxWait); err != nil {
			return reserve.Reservation{}, err
		}
	}
	return e.promote().ReserveWithin(ctx, n, maxWait)
}

// promote returns the entry's limiter, after making it a whole one.
func (e *entry[K]) promote() *reserve.Limiter {
	if e.limiter == nil {
		e.limiter = e.compact.promote(e.policy)
	}
	return e.limiter
}
