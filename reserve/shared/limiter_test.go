package shared_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nextfree/pace/internal/variant"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/redis"
	"github.com/nextfree/pace/internal/server"
	"github.com/nextfree/pace/internal/smooth"
	"github.com/nextfree/pace/internal/watchdog"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/window"
)

var _ reserve.Reserver = (*shared.Limiter)(nil)

// Two processes' limiters on one key: together they have one store.
func TestShared(t *testing.T) {
	watchdog.Start(t)
	eachServer(t, func(t *testing.T, c *redis.Client) {
		p := reserve.Must(pace.Bursty(0.01, pace.WithCapacity(50)))
		var wg sync.WaitGroup
		granted := make([]int, 2)
		for i := range granted {
			l := newShared(t, c, "both", p)
			for g := range 8 {
				wg.Go(func() {
					for range 20 {
						ok, err := l.TryAcquire(context.Background(), 1)
						if err != nil {
							t.Error(g, err)
						}
						if ok {
							mu.Lock()
							granted[i]++
							mu.Unlock()
						}
					}
				})
			}
		}
		wg.Wait()
		require.Equal(t, 51, granted[0]+granted[1], "50 stored, and one that is prepaid")
	})
}

var mu sync.Mutex

// 200 callers at once, each with a longest wait of its own, get 200 different times
// and those whose time is too late are told so.
func TestCoalesced(t *testing.T) {
	watchdog.Start(t)
	eachServer(t, func(t *testing.T, c *redis.Client) {
		l := newShared(t, c, "coalesced", reserve.Must(pace.Bursty(1, pace.WithCapacity(0))))
		_, err := l.Reserve(t.Context(), 1000) // so all of them wait, and time passes without granting any
		require.NoError(t, err)
		var wg sync.WaitGroup
		times := map[int64]int{}
		refused := 0
		for i := range 200 {
			wg.Go(func() {
				wait := reserve.Forever
				if i%4 == 0 {
					wait = time.Minute
				}
				r, err := l.ReserveWithin(context.Background(), 1, wait)
				mu.Lock()
				defer mu.Unlock()
				var e *reserve.WaitError
				switch {
				case errors.As(err, &e):
					refused++
					if e.MaxWait != time.Minute || e.Wait < 15*time.Minute {
						t.Error(e)
					}
				case err != nil:
					t.Error(err)
				default:
					times[int64(r.Delay().Round(time.Second))]++
				}
			})
		}
		wg.Wait()
		require.Equal(t, 50, refused)
		r, err := l.Reserve(t.Context(), 1)
		require.NoError(t, err)
		require.InDelta(t, 1150, r.Delay().Seconds(), 30)
	})
}

func TestAcquire(t *testing.T) {
	eachServer(t, func(t *testing.T, c *redis.Client) {
		l := newShared(t, c, "acquire", reserve.Must(pace.Bursty(100, pace.WithCapacity(0))))
		begin := time.Now()
		_, err := l.Reserve(t.Context(), 30)
		require.NoError(t, err)
		waited, err := l.Acquire(t.Context(), 1)
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(begin), 299*time.Millisecond)
		require.LessOrEqual(t, waited, 301*time.Millisecond)

		// Too long for the deadline: nothing is taken.
		_, err = l.Reserve(t.Context(), 10_000)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = l.Acquire(ctx, 1)
		var refused *reserve.WaitError
		require.ErrorAs(t, err, &refused)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.InDelta(t, 100, refused.Wait.Seconds(), 30)
		before, err := l.NextFree(t.Context())
		require.NoError(t, err)

		// Given up while waiting: given back.
		ctx, stop := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		r, err := l.Reserve(ctx, 6000)
		require.NoError(t, err)
		stop(gone)
		require.ErrorIs(t, r.Wait(ctx), gone)
		require.ErrorIs(t, r.Wait(t.Context()), reserve.ErrCancelled)
		after, err := l.NextFree(t.Context())
		require.NoError(t, err)
		require.WithinDuration(t, before, after, 30*time.Second)
	})
}

// All of a shared limiter and a local one: if one refuses, the other has its permits back.
func TestAll(t *testing.T) {
	eachServer(t, func(t *testing.T, c *redis.Client) {
		global := newShared(t, c, "all", reserve.Must(pace.Bursty(0.001, pace.WithCapacity(10))))
		mine := reserve.Must(pace.NewBursty(0.01, pace.WithCapacity(2), reserve.WithStored(2)))
		both := reserve.All(global, mine)
		for range 3 {
			r, err := both.ReserveWithin(t.Context(), 1, 0)
			require.NoError(t, err)
			require.Zero(t, r.Delay())
		}
		_, err := both.ReserveWithin(t.Context(), 1, 0)
		require.IsType(t, &reserve.WaitError{}, err)
		stored, err := global.Stored(t.Context())
		require.NoError(t, err)
		require.InDelta(t, 7, stored, 0.5)

		r, err := reserve.All(global, mine).ReserveWithin(t.Context(), 1, reserve.Forever)
		require.NoError(t, err)
		require.Greater(t, r.Delay(), 50*time.Second)
		r.Cancel()
		stored, err = global.Stored(t.Context())
		require.NoError(t, err)
		require.InDelta(t, 7, stored, 0.5)
	})
}

func TestKeyed(t *testing.T) {
	eachServer(t, func(t *testing.T, c *redis.Client) {
		k, err := shared.NewKeyed(c, reserve.Must(pace.Bursty(0.01, pace.WithCapacity(1))), shared.WithTimeout(5*time.Second))
		require.NoError(t, err)
		for i := range 300 {
			key := fmt.Sprint("user ", i)
			for _, want := range []bool{true, true, false} { // one stored, one prepaid
				ok, err := k.TryAcquire(t.Context(), key, 1)
				require.NoError(t, err)
				require.Equal(t, want, ok)
			}
		}
		r, err := k.For("somebody else").ReserveWithin(t.Context(), 1, 0)
		require.NoError(t, err)
		require.Zero(t, r.Delay())
		n, err := c.Do(t.Context(), "EXISTS", k.Stored("user 7"))
		require.NoError(t, err)
		require.EqualValues(t, 1, n)

		// Free keys are forgotten as new ones come.
		k, err = shared.NewKeyed(c, reserve.Must(pace.Bursty(1000)), shared.WithTimeout(5*time.Second))
		require.NoError(t, err)
		for i := range 1000 {
			_, err := k.Acquire(t.Context(), fmt.Sprint("idle ", i), 1)
			require.NoError(t, err)
		}
		require.Less(t, k.Len(), 10)
	})
}

// Of curves only those are shared whose price the script knows.
func TestCurves(t *testing.T) {
	for _, c := range []struct {
		line *smooth.LinearPrice
		why  string
	}{
		{line: &smooth.LinearPrice{Base: 1e8}},
		{
			line: &smooth.LinearPrice{Threshold: 5, Slope: 1e8},
			why:  "the first of its stored permits are free, and others are not",
		},
	} {
		var curve func(rate float64) *smooth.Curve
		curve = func(rate float64) *smooth.Curve {
			i := smooth.Interval(rate)
			return &smooth.Curve{
				Rate: rate, Capacity: 10, Interval: i, Refill: 1 / i, Line: c.line, AtRate: curve,
			}
		}
		v := variant.Variant{Package: "shared_test", Limiter: "a curve", Curve: curve}
		policy := reserve.Must(v.Policy(10))
		_, err := shared.New(&noServer{}, "api", policy)
		if c.why == "" {
			require.NoError(t, err)
			continue
		}
		require.Equal(t, &shared.CurveError{Why: c.why}, err)
	}
}

// A policy or an argument that makes no sense, or can't be shared, is refused with a typed error.
func TestBadInput(t *testing.T) {
	s := server.Start(t)
	c := connect(t, s)
	good := reserve.Must(pace.Bursty(1))
	var value *reserve.ValueError
	var curve *shared.CurveError
	var option *reserve.OptionError

	_, err := shared.New(c, "x", reserve.Must(window.Policy(5, time.Second)))
	require.ErrorAs(t, err, &curve)
	_, err = shared.New(c, "x", reserve.Must(pace.Bursty(10, reserve.WithStored(5))))
	require.ErrorAs(t, err, &option)
	require.EqualError(t, err, "shared: WithStored does not apply to a shared limiter, which starts with a full store")
	for _, opt := range []shared.Option{shared.WithTimeout(0), shared.Local(0), shared.Local(1.5), shared.WithPrefix("a{b}")} {
		_, err = shared.New(c, "x", good, opt)
		require.ErrorAs(t, err, &value)
		require.ErrorContains(t, err, "shared: ")
	}
	l := newShared(t, c, "x", good)
	_, err = l.Reserve(t.Context(), 0)
	require.ErrorAs(t, err, &value)
	_, err = l.TryAcquire(t.Context(), -1)
	require.ErrorAs(t, err, &value)
	require.ErrorAs(t, l.SetRate(t.Context(), -1), &value)
	require.EqualValues(t, 1, l.Rate())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = l.Reserve(ctx, 1)
	require.ErrorIs(t, err, context.Canceled)
}
