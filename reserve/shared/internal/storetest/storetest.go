// Package storetest is the suite that every [shared.Store] runs.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/warmup"
)

// Run runs the suite. Open returns a store for one test; with the same t, one that shares the states of its
// limiters. Sequences is how many random sequences of 40 operations are compared with Memory's (0: 200), unless the
// variable PACE_QUEUES says another number.
func Run(t *testing.T, open func(t *testing.T) shared.Store, sequences int) {
	if sequences == 0 {
		sequences = 200
	}
	if more, err := strconv.Atoi(os.Getenv("PACE_QUEUES")); err == nil {
		sequences = more
	}
	t.Run("update", func(t *testing.T) { update(t, open) })
	t.Run("same as memory", func(t *testing.T) { same(t, open(t), sequences) })
	t.Run("contended", func(t *testing.T) { contended(t, open) })
}

// update checks what Store says of Update.
func update(t *testing.T, open func(t *testing.T) shared.Store) {
	s, again := open(t), open(t)
	ctx := t.Context()
	for _, key := range []string{"pace:{update}", `odd:{ "/\..* äö ` + "\x00" + `}`} {
		put := func(s shared.Store, value string) (old []byte, now time.Time, err error) {
			err = s.Update(ctx, key, func(at time.Time, was []byte) ([]byte, time.Duration, error) {
				now, old = at, nil
				if was != nil {
					old = append([]byte{}, was...)
				}
				return []byte(value), time.Hour, nil
			})
			return old, now, err
		}
		old, now, err := put(s, "one\x00two")
		require.NoError(t, err)
		require.Nil(t, old, "there was no value")
		if !now.IsZero() {
			require.WithinDuration(t, time.Now(), now, time.Minute)
		}
		refused := errors.New("refused")
		err = s.Update(ctx, key, func(time.Time, []byte) ([]byte, time.Duration, error) { return []byte("no"), 0, refused })
		require.ErrorIs(t, err, refused)
		for i, value := range []string{"x", "a longer one than before", "short"} {
			old, _, err = put(again, value)
			require.NoError(t, err)
			require.Equal(t, []string{"one\x00two", "x", "a longer one than before"}[i], string(old))
			require.NotNil(t, old)
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		err = s.Update(ended, key, func(time.Time, []byte) ([]byte, time.Duration, error) {
			return []byte("late"), time.Hour, nil
		})
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
			old, _, err = put(s, "x")
			require.NoError(t, err)
			require.Equal(t, "short", string(old))
		}
	}
}

type clocked struct {
	shared.Store
	now *time.Time
}

func (c clocked) Update(
	ctx context.Context, key string, f func(time.Time, []byte) ([]byte, time.Duration, error),
) error {
	return c.Store.Update(ctx, key, func(_ time.Time, old []byte) ([]byte, time.Duration, error) {
		value, keep, err := f(*c.now, old)
		return value, min(keep, time.Hour) + time.Hour, err // the store's own clock goes on while the test's stands
	})
}

// same compares the answers of the store and of Memory on random sequences, to the nanosecond.
func same(t *testing.T, store shared.Store, sequences int) {
	policies := []*reserve.Policy{
		reserve.Must(pace.Bursty(10)), reserve.Must(pace.Bursty(1000.5, pace.WithCapacity(7.5))),
		reserve.Must(pace.TokenBucket(3, 20)), reserve.Must(warmup.Policy(10, 2*time.Second)),
		reserve.Must(window.Policy(10, time.Second)), reserve.Must(calendar.Policy(10, calendar.Daily(time.UTC, 0))),
	}
	for seed := range uint64(sequences) {
		random := rand.New(rand.NewPCG(seed, 31))
		policy := policies[random.IntN(len(policies))]
		rate := []float64{10, 1000.5, 3, 10}[seed%4]
		now := time.Unix(1_790_000_000, 0)
		name := fmt.Sprint("same ", seed)
		var limiters [2][2]*shared.Limiter
		for i, in := range []shared.Store{clocked{store, &now}, clocked{shared.Memory(), &now}} {
			for j := range limiters[i] {
				l, err := shared.NewIn(in, name, policy, shared.WithTimeout(time.Minute))
				require.NoError(t, err)
				limiters[i][j] = l
			}
		}
		type pair [2]reserve.Reservation
		var held []*pair
		for k := range 40 {
			at := fmt.Sprintf("sequence %d, operation %d", seed, k)
			who := random.IntN(2)
			n, limit := 1+random.IntN(6), time.Duration(random.ExpFloat64()*3e9/rate)
			back, keep := random.IntN(len(held)+1), random.IntN(2)
			what, by := random.IntN(8), time.Duration(random.ExpFloat64()*4e6/rate)*time.Microsecond
			if what <= 1 {
				now = now.Add(by)
			}
			both := &pair{}
			var errs [2]error
			var shots [2]shared.Snapshot
			for i := range limiters {
				l := limiters[i][who]
				switch what {
				case 0, 1:
				case 2, 3:
					if back < len(held) {
						held[back][i].Settle(keep)
					}
				case 4:
					if back == 0 && keep == 0 {
						errs[i] = l.Reset(t.Context())
					}
				default:
					both[i], errs[i] = l.ReserveWithin(t.Context(), n, limit)
				}
				var err error
				shots[i], err = l.Snapshot(t.Context())
				require.NoError(t, err, at)
			}
			require.Equal(t, fmt.Sprint(errs[1]), fmt.Sprint(errs[0]), at)
			require.Equal(t, shots[1], shots[0], at)
			if what > 4 && errs[0] == nil {
				held = append(held, both)
			}
		}
	}
}

// contended checks that callers of several opened stores together get what there is.
func contended(t *testing.T, open func(t *testing.T) shared.Store) {
	const stores, callers, each = 4, 4, 40
	policy := reserve.Must(pace.Bursty(0.001, pace.WithCapacity(100)))
	var granted atomic.Int64
	var all sync.WaitGroup
	for range stores {
		l, err := shared.NewIn(open(t), "contended", policy, shared.WithTimeout(time.Minute))
		require.NoError(t, err)
		for range callers {
			all.Go(func() {
				for range each {
					ok, err := l.TryAcquire(context.Background(), 1)
					if err != nil {
						t.Error(err)
					}
					if ok {
						granted.Add(1)
					}
				}
			})
		}
	}
	all.Wait()
	require.Equal(t, int64(101), granted.Load(), "100 stored, and one that is paid for later")
}
