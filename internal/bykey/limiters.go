package bykey

import (
	"context"
	"errors"
	"hash/maphash"
	"iter"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve"
)

var valueError = invalid.In("keyed")

var (
	ErrTooManyKeys = errors.New("keyed: too many keys")
	ErrUnknown     = errors.New("keyed: unknown key")
)

// Limiters is keyed.Limiters, which documents its methods.
type Limiters[K comparable] struct {
	policy   func(K) (*reserve.Policy, error)
	always   *engine.Policy // of all keys; nil: the function is asked
	guard    Guard[K]       // nil if all keys are welcome
	refused  atomic.Uint32  // by the guard
	seed     maphash.Seed
	begin    time.Time
	ownBegin atomic.Pointer[time.Time] // on the policies' own clock; nil until a policy was seen
	maxKeys  int64
	perTick  int64         // a part of the policies' time to live, in nanoseconds; 0: they have none
	keys     atomic.Int64  // remembered in all shards, or new: their policy is being asked for
	turn     atomic.Uint32 // of the shard that is swept next
	shards   []shard[K]
}

type Settings[K comparable] struct {
	Policy  func(key K) (*reserve.Policy, error) // of a key, if Always is nil
	Always  *reserve.Policy                      // of all keys
	MaxKeys int
	TTL     time.Duration // for which an answer of Policy is good; 0 or less: without end
	Guard   Guard[K]      // nil: all keys are welcome
}

// A Guard decides which new keys are remembered, so that no network takes the room of all others. Its methods run
// concurrently, under a lock: they must be quick, and must not use the limiters.
type Guard[K comparable] interface {
	// Admits reports whether a new key may be remembered beside that many; if not: ErrTooManyKeys.
	Admits(key K, remembered int) bool
	// Count is called for each key that is remembered (by 1) or dropped (by -1).
	Count(key K, by int)
}

func New[K comparable](s Settings[K]) *Limiters[K] {
	k := &Limiters[K]{
		policy:  s.Policy,
		always:  (*engine.Policy)(s.Always),
		guard:   s.Guard,
		seed:    maphash.MakeSeed(),
		begin:   time.Now(),
		maxKeys: int64(s.MaxKeys),
		shards:  make([]shard[K], shardsFor(s.MaxKeys)),
	}
	if s.TTL > 0 {
		k.perTick = max(1, int64(s.TTL/ticks))
	}
	return k
}

// shardsFor returns a power of two: some 4096 keys a shard, whose table grows in some 50 us; at least 16, so that 8
// goroutines seldom meet; at most 1024, which take 128 KB.
func shardsFor(maxKeys int) int {
	return 1 << bits.Len(uint(min(max(maxKeys/4096, 16), 1024))-1)
}

func (k *Limiters[K]) TryAcquire(key K, n int) bool {
	had := false
	err := k.with(context.Background(), key, func(e *entry[K]) error {
		had = e.tryAcquire(n)
		return nil
	})
	return had && err == nil
}

func (k *Limiters[K]) Acquire(ctx context.Context, key K, n int) (waited time.Duration, err error) {
	var r *reserve.Reservation // nil where nothing has to be waited for
	err = k.with(ctx, key, func(e *entry[K]) error {
		if e.take(ctx, n) {
			return nil
		}
		held, err := e.reserve(ctx, n, reserve.Forever)
		r = &held
		return err
	})
	if err != nil || r == nil {
		return 0, err
	}
	return (*engine.Reservation)(r).Await(ctx)
}

func (k *Limiters[K]) ReserveWithin(
	ctx context.Context, key K, n int, maxWait time.Duration,
) (r reserve.Reservation, err error) {
	err = k.with(ctx, key, func(e *entry[K]) (err error) {
		r, err = e.reserve(ctx, n, maxWait)
		return err
	})
	return
}

// Take is ReserveWithin, but if the permits are used in any case and available now, the key stays compact.
func (k *Limiters[K]) Take(
	ctx context.Context, key K, n int, maxWait time.Duration, used bool,
) (t limit.Taken, err error) {
	err = k.with(ctx, key, func(e *entry[K]) (err error) {
		if used && e.whole == nil && e.take(ctx, n) {
			t.Left = e.outlook()
			return nil
		}
		t.Reservation, err = e.reserve(ctx, n, maxWait)
		return err
	})
	return
}

func (k *Limiters[K]) Peek(key K, n int) (wait time.Duration, err error) {
	err = k.with(context.Background(), key, func(e *entry[K]) (err error) {
		wait, err = e.peek(n)
		return err
	})
	return wait, err
}

func (k *Limiters[K]) Outlook(key K) (o engine.Outlook, err error) {
	err = k.with(context.Background(), key, func(e *entry[K]) error {
		o = e.outlook()
		return nil
	})
	return o, err
}

func (k *Limiters[K]) Snapshot(key K) (s reserve.Snapshot, err error) {
	err = k.with(context.Background(), key, func(e *entry[K]) error {
		s = reserve.Snapshot(e.copied().Snapshot())
		return nil
	})
	return s, err
}

func (k *Limiters[K]) Len() int { return int(k.keys.Load()) }

func (k *Limiters[K]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		for i := range k.shards {
			for _, key := range k.shards[i].keys() {
				if !yield(key) {
					return
				}
			}
		}
	}
}
