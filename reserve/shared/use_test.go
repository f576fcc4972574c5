package shared_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/window"
)

// A mortal is a process's way to a store, until the process is killed; a stopped one does not answer.
type mortal struct {
	shared.Store
	killed, stopped atomic.Bool
	calls           atomic.Int64
}

func (m *mortal) Update(
	ctx context.Context, key string, f func(time.Time, []byte) ([]byte, time.Duration, error),
) error {
	m.calls.Add(1)
	if m.killed.Load() {
		return errors.New("killed")
	}
	if m.stopped.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return m.Store.Update(ctx, key, f)
}

// processes returns limiters of one policy in one store, of processes of their own.
func processes(t *testing.T, n int, p *reserve.Policy) (limiters []*shared.Limiter, stores []*mortal) {
	store := shared.Memory()
	for range n {
		s := &mortal{Store: store}
		l, err := shared.NewIn(s, "api", p, shared.FailClosed())
		require.NoError(t, err)
		limiters, stores = append(limiters, l), append(stores, s)
	}
	return limiters, stores
}

// inUse takes permits, and returns a function that ends their use.
func inUse(t *testing.T, l *shared.Limiter, n int) (end func()) {
	r, err := l.Reserve(t.Context(), n)
	require.NoError(t, err)
	require.NoError(t, r.Wait(t.Context()))
	limit.Begin(&r)
	synctest.Wait() // the store knows that uses are told
	return func() { limit.End(&r) }
}

// after returns when a permit is granted, counted from begin.
func after(t *testing.T, l *shared.Limiter, begin time.Time) time.Duration {
	_, err := l.Acquire(t.Context(), 1)
	require.NoError(t, err)
	return time.Since(begin)
}

// The case that found it: 10 in a second, and uses of 100 ms. A permit counts until its use ends, for all processes.
func TestWindowCountsUntilTheEndOfAUse(t *testing.T) {
	for _, size := range []int{10, 1000} { // more than a journal has records
		for _, waits := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				all, _ := processes(t, 2, reserve.Must(window.Policy(size, time.Second)))
				begin := time.Now()
				for range size {
					time.AfterFunc(100*time.Millisecond, inUse(t, all[0], 1))
				}
				if !waits { // while the permits are out
					time.Sleep(500 * time.Millisecond)
				}
				require.Equal(t, 1100*time.Millisecond, after(t, all[1], begin))
				time.Sleep(time.Second)
			})
		}
	}
}

// A use that lasts for longer than the window holds its permits all the time.
func TestWindowOfALongUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, _ := processes(t, 2, reserve.Must(window.Policy(1, time.Second)))
		begin := time.Now()
		time.AfterFunc(150*time.Second, inUse(t, all[0], 1))
		require.InDelta(t, 151, after(t, all[1], begin).Seconds(), 1)
		require.GreaterOrEqual(t, time.Since(begin), 151*time.Second)
		time.Sleep(time.Second)
	})
}

// A killed process's uses are over a minute after its last word of them.
func TestUsesOfAKilledProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, stores := processes(t, 2, reserve.Must(window.Policy(1, time.Second)))
		begin := time.Now()
		end := inUse(t, all[0], 1)
		time.Sleep(500 * time.Millisecond)
		stores[0].killed.Store(true)
		took := after(t, all[1], begin)
		require.GreaterOrEqual(t, took, 61*time.Second)
		require.Less(t, took, 63*time.Second)
		end()
		time.Sleep(time.Hour)
	})
}

// A call that is out when a quota's period begins counts in it.
func TestQuotaCountsUses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, _ := processes(t, 2, reserve.Must(calendar.Policy(2, calendar.Every(time.Hour))))
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour - 500*time.Millisecond)))
		end := inUse(t, all[0], 1)
		time.Sleep(time.Second)
		end()
		synctest.Wait()
		n := 0
		for range 3 {
			ok, err := all[1].TryAcquire(t.Context(), 1)
			require.NoError(t, err)
			if ok {
				n++
			}
		}
		require.Equal(t, 1, n)
	})
}

// What it costs: a call for a use's end, that nobody waits for.
func TestCallsOfUses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, stores := processes(t, 1, reserve.Must(window.Policy(10, time.Second)))
		for range 10 {
			end := inUse(t, all[0], 1)
			time.Sleep(20 * time.Millisecond)
			end()
			synctest.Wait()
		}
		require.EqualValues(t, 21, // with one that tells of the first use
			stores[0].calls.Load())
		end := inUse(t, all[0], 1)
		synctest.Wait()
		require.EqualValues(t, 22, stores[0].calls.Load())
		end()
		synctest.Wait()
		l, err := shared.NewIn(stores[0], "plain", reserve.Must(window.Policy(1, time.Second)))
		require.NoError(t, err)
		require.Zero(t, after(t, l, time.Now()))
		for range 3 { // and without uses none
			before := stores[0].calls.Load()
			require.Equal(t, time.Second, after(t, l, time.Now()))
			require.EqualValues(t, 1, stores[0].calls.Load()-before)
		}
	})
}

// A cancelled use counts no more, and a second End changes nothing.
func TestCancelOfAUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, _ := processes(t, 2, reserve.Must(window.Policy(1, time.Second)))
		r, err := all[0].Reserve(t.Context(), 1)
		require.NoError(t, err)
		limit.Begin(&r)
		time.Sleep(time.Second)
		limit.End(&r)
		limit.End(&r)
		synctest.Wait()
		ok, err := all[1].TryAcquire(t.Context(), 1)
		require.NoError(t, err)
		require.False(t, ok)
		r.Cancel()
		time.Sleep(time.Second) // for so long a refusal is believed
		ok, err = all[1].TryAcquire(t.Context(), 1)
		require.NoError(t, err)
		require.True(t, ok)
	})
}

// A reservation that waits and is settled for less still waits, for what is left of its permits.
func TestSettleOfAWaitingReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, _ := processes(t, 1, reserve.Must(pace.TokenBucket(1, 1)))
		begin := time.Now()
		require.Zero(t, after(t, all[0], begin))
		r, err := all[0].Reserve(t.Context(), 3)
		require.NoError(t, err)
		r.Settle(2)
		require.NoError(t, r.Wait(t.Context()))
		require.Equal(t, 2*time.Second, time.Since(begin))
		r, err = all[0].Reserve(t.Context(), 3)
		require.NoError(t, err)
		r.Settle(0)
		require.ErrorIs(t, r.Wait(t.Context()), reserve.ErrCancelled)
	})
}

// A wait ends with its context, though the store that gets the permits back does not answer.
func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, stores := processes(t, 1, reserve.Must(pace.TokenBucket(1, 1)))
		_, err := all[0].Reserve(t.Context(), 5)
		require.NoError(t, err)
		r, err := all[0].Reserve(t.Context(), 1)
		require.NoError(t, err)
		stores[0].stopped.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		begin := time.Now()
		require.ErrorIs(t, r.Wait(ctx), context.Canceled)
		require.Equal(t, 100*time.Millisecond, time.Since(begin))
		time.Sleep(time.Minute)
	})
}
