package bykey_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
)

var errUnknown = errors.New("no such tenant")

// An error goes to the caller, and the next one asks again.
func TestPolicyErrors(t *testing.T) {
	calls := 0
	policy := reserve.Must(pace.Bursty(1))
	keys := keyed.New(func(string) (*reserve.Policy, error) {
		if calls++; calls <= 5 {
			return nil, errUnknown
		}
		return policy, nil
	})
	_, err := keys.Acquire(ctx, "a", 1)
	require.Equal(t, errUnknown, err)
	_, err = keys.For("a").ReserveWithin(ctx, 1, 0)
	require.Equal(t, errUnknown, err)
	require.False(t, keys.TryAcquire("a", 1))
	require.Equal(t, errUnknown, keys.For("a").(keyed.Limiter).SetRate(1))
	require.Zero(t, keys.For("a").(keyed.Limiter).Stored())
	require.Equal(t, 5, calls)
	entries, asks := inside(keys).Counted()
	require.Zero(t, entries+asks+keys.Len())

	require.True(t, keys.TryAcquire("a", 1000))
	require.False(t, keys.TryAcquire("a", 1))
	require.Equal(t, 6, calls, "what is remembered of a key is its policy, too")
}

func TestNoPolicyAndNoError(t *testing.T) {
	keys := keyed.New(func(string) (*reserve.Policy, error) { return nil, nil })
	_, err := keys.Acquire(ctx, "a", 1)
	var bad *reserve.ValueError
	require.ErrorAs(t, err, &bad)
	require.EqualError(t, err, "keyed: policy is <nil>; want a policy or an error")
}

// A function that panics does so in its caller, and leaves nothing behind that
// would block the others.
func TestPolicyPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		called := make(chan bool)
		keys := keyed.New(func(string) (*reserve.Policy, error) { <-called; panic("no database") })
		var waiting error
		go func() {
			synctest.Wait()
			go func() {
				synctest.Wait()
				close(called)
			}()
			_, waiting = keys.Acquire(ctx, "a", 1)
		}()
		require.PanicsWithValue(t, "no database", func() { keys.TryAcquire("a", 1) })
		synctest.Wait()
		require.EqualError(t, waiting, "keyed: the policy function panicked")
		require.PanicsWithValue(t, "no database", func() { keys.TryAcquire("a", 1) })
		entries, asks := inside(keys).Counted()
		require.Zero(t, entries+asks)
	})
}

// While the function takes its time for one key, whoever wants that key waits for
// the same call or gives up, and whoever wants another one does not wait at all.
func TestSlowPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := reserve.Must(pace.Bursty(1))
		calls := map[string]int{}
		var keys *keyed.Limiters[string]
		var mu sync.Mutex
		keys = keyed.New(func(key string) (*reserve.Policy, error) {
			mu.Lock()
			calls[key]++
			mu.Unlock()
			if strings.HasPrefix(key, "slow") {
				time.Sleep(time.Minute)
				// It may ask for other keys, too.
				_, err := keys.Acquire(ctx, "tenants", 1)
				return policy, err
			}
			return policy, nil
		})
		begin := time.Now()
		granted, gaveUp := 0, 0
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				hasty, cancel := context.WithTimeout(ctx, s)
				defer cancel()
				if i%2 == 0 {
					hasty = ctx
				}
				_, err := keys.ReserveWithin(hasty, "slow", 1, s)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					granted++
				case errors.Is(err, context.DeadlineExceeded):
					gaveUp++
				}
			})
		}
		synctest.Wait()
		for range 1000 { // not one of all the shards is locked
			require.True(t, keys.TryAcquire(time.Now().String(), 1))
			time.Sleep(time.Microsecond)
		}
		require.Less(t, time.Since(begin), s)
		all.Wait()
		require.Equal(t, 1, calls["slow"])
		// A minute's worth of a burst of one second is stored: one at once, one
		// prepaid, and one a second later.
		require.Equal(t, 3, granted)
		// The first one to ask is the one who calls the function, and can't give up then.
		require.GreaterOrEqual(t, gaveUp, 49)
	})
}

func TestTiersShareNothingButTheirPolicies(t *testing.T) {
	b := bursty(1, 1)
	free := reserve.Must(pace.Bursty(1, reserve.WithClock(b.FakeClock)))
	paid := reserve.Must(pace.Bursty(100, reserve.WithClock(b.FakeClock)))
	keys := keyed.New(func(key string) (*reserve.Policy, error) {
		if strings.HasPrefix(key, "paid") {
			return paid, nil
		}
		return free, nil
	})
	b.Advance(s)
	require.True(t, keys.TryAcquire("paid 1", 100))
	require.True(t, keys.TryAcquire("free 1", 1))
	require.True(t, keys.TryAcquire("free 1", 1))
	require.False(t, keys.TryAcquire("free 1", 1))
	require.True(t, keys.TryAcquire("paid 2", 100))
	require.Equal(t, 1.0, keys.For("free 2").(keyed.Limiter).Stored())
	require.Equal(t, 100.0, keys.For("paid 3").(keyed.Limiter).Rate())
	require.Equal(t, 3, keys.Len())
}
