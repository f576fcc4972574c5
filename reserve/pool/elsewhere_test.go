package pool_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/pool"
)

// A promised is a Reserver of the user's with reservations of its own, which tell of no change.
type promised struct{ by reserve.Reserver }

func (p promised) ReserveWithin(ctx context.Context, n int, d time.Duration) (reserve.Reservation, error) {
	r, err := p.by.ReserveWithin(ctx, n, d)
	if err != nil {
		return reserve.Reservation{}, err
	}
	return reserve.NewReservation(&r), nil
}

// A caller with a deadline goes to another member that is in time if its own is paused, whatever its limit is.
func TestInTimeElsewhere(t *testing.T) {
	all := map[string]func() limited{
		"promise": func() limited { l := even(1); return limited{promised{l}, l.PauseUntil, l.Resume} },
	}
	for name, kind := range kinds {
		all[name] = kind
	}
	for name, kind := range all {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := kind(), even(1)
				r := reserve.Must(a.ReserveWithin(background, 5, reserve.Forever))
				require.NoError(t, r.Wait(background))
				b.TryAcquire(20)
				p := reserve.Must(pool.New([]pool.Member[string]{{Value: "a", By: a}, {Value: "b", By: b}}))
				ctx, cancel := context.WithTimeout(background, 30*time.Second)
				defer cancel()
				begin := time.Now()
				time.AfterFunc(time.Second, func() { a.pause(time.Now().Add(time.Hour)) })
				lease, err := p.Acquire(ctx, 1)
				require.NoError(t, err)
				require.Equal(t, "b", lease.Value())
				require.Equal(t, 20*time.Second, time.Since(begin))
				time.Sleep(time.Hour)
			})
		})
	}
}

// A request that moves to another member keeps its position, among direct callers, at a limit that both members have.
func TestMovesWithItsPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account, a, b := even(1), even(1000), even(1000)
		account.TryAcquire(5)
		p := reserve.Must(pool.New([]pool.Member[string]{
			{Value: "a", By: reserve.All(account, a)}, {Value: "b", By: reserve.All(account, b)},
		}))
		begin := time.Now()
		var all sync.WaitGroup
		acquire := func() {
			all.Go(func() {
				lease, err := p.Acquire(background, 1)
				require.NoError(t, err)
				require.Equal(t, "b", lease.Value())
				require.Equal(t, 5*time.Second, time.Since(begin))
			})
			synctest.Wait()
		}
		acquire()
		direct := reserve.Must(account.Reserve(background, 1))
		require.Equal(t, 6*time.Second, direct.Delay())
		a.PauseUntil(begin.Add(time.Hour))
		all.Wait()
		require.Equal(t, time.Second, direct.Delay())
	})
}
