package window_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

// With 10 a second and 150 ms from sending to answer, the next 10 go 1.15 s after the first.
func TestUse(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := reserve.Must(window.New(10, time.Second, reserve.WithClock(clock)))
	r, err := l.Reserve(ctx, 10)
	require.NoError(t, err)
	limit.Begin(&r)
	clock.Advance(150 * time.Millisecond)
	limit.End(&r)
	clock.Advance(999 * time.Millisecond)
	require.False(t, l.TryAcquire(1))
	clock.Advance(time.Millisecond)
	require.True(t, l.TryAcquire(1))
}

// What is in use counts for however long that takes: a call whose answer takes three windows is counted once more when
// it comes.
func TestUseLongerThanTheWindow(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := reserve.Must(window.New(2, time.Second, reserve.WithClock(clock)))
	r, _ := l.Reserve(ctx, 2)
	limit.Begin(&r)
	clock.Advance(3 * time.Second)
	waiting, err := l.Reserve(ctx, 1)
	require.NoError(t, err)
	require.Equal(t, time.Second, waiting.Delay())
	clock.Advance(500 * time.Millisecond)
	require.Equal(t, time.Second, waiting.Delay())
	limit.End(&r)
	clock.Advance(999 * time.Millisecond)
	require.Equal(t, time.Millisecond, waiting.Delay())
	clock.Advance(time.Millisecond)
	require.Zero(t, waiting.Delay())
}

// Cancel and Settle of permits in use, and of permits whose use is over, take them out of the window.
func TestUseGivenBack(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := reserve.Must(window.New(10, time.Second, reserve.WithClock(clock)))
	a, _ := l.Reserve(ctx, 4)
	b, _ := l.Reserve(ctx, 4)
	c, _ := l.Reserve(ctx, 2)
	for _, r := range []*reserve.Reservation{&a, &b, &c} {
		limit.Begin(r)
	}
	require.Zero(t, l.Stored())
	a.Cancel()
	require.Equal(t, 4., l.Stored())
	b.Settle(1) // its use is over, and came to one
	require.Equal(t, 7., l.Stored())
	limit.End(&c)
	c.Settle(0)
	require.Equal(t, 9., l.Stored())
	clock.Advance(time.Second)
	require.Equal(t, 10., l.Stored())
}

func TestWithMargin(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := reserve.Must(window.New(10, time.Second, window.WithMargin(60*time.Millisecond), reserve.WithClock(clock)))
	require.True(t, l.TryAcquire(10))
	require.Equal(t, 10., l.Rate())
	clock.Advance(1059 * time.Millisecond)
	require.False(t, l.TryAcquire(1))
	clock.Advance(time.Millisecond)
	require.True(t, l.TryAcquire(10))
	require.NoError(t, l.SetRate(1))
	clock.Advance(10*time.Second + 59*time.Millisecond)
	require.False(t, l.TryAcquire(1))
	clock.Advance(time.Millisecond)
	require.True(t, l.TryAcquire(10))

	_, err := window.New(10, time.Second, window.WithMargin(-1))
	require.EqualError(t, err, "window: WithMargin is -1ns; want 0 or more")
}

// Whatever a network and callers do, no stretch of per at a server that counts each call at any moment between its
// Begin and its End holds more than n: the first of any n+1 calls in a row, by their grants, ended at least per before
// the last was granted. And nobody waits for longer than that takes.
func TestUseInvariant(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for run := range 200 / limitertest.Slower {
		random := rand.New(rand.NewPCG(seed, uint64(run)))
		clock := clockwork.NewFakeClock()
		n, per := 1+random.IntN(6), time.Duration(2+random.IntN(12))*time.Microsecond
		l := reserve.Must(window.New(n, per, reserve.WithClock(clock)))
		type call struct {
			r       reserve.Reservation
			permits int
			ended   time.Duration // since the start; -1: not yet
			waiting bool
		}
		var calls []*call
		start := clock.Now()
		now := func() time.Duration { return clock.Since(start) }
		for range 300 {
			switch random.IntN(5) {
			case 0, 1:
				c := &call{permits: 1 + random.IntN(n), waiting: true, ended: -1}
				c.r = reserve.Must(l.Reserve(ctx, c.permits))
				calls = append(calls, c)
			case 2:
				out := func(c *call) bool { return !c.waiting && c.ended < 0 && random.IntN(3) == 0 }
				if i := slices.IndexFunc(calls, out); i >= 0 {
					limit.End(&calls[i].r)
					calls[i].ended = now()
				}
			default:
				clock.Advance(time.Microsecond)
			}
			for _, c := range calls {
				if c.waiting && c.r.Delay() == 0 {
					c.waiting = false
					limit.Begin(&c.r)
					used := c.permits // whatever is out, or ended within the last per
					for _, other := range calls {
						if other != c && !other.waiting && (other.ended < 0 || other.ended > now()-per) {
							used += other.permits
						}
					}
					require.LessOrEqual(t, used, n, "run %d", run)
				}
			}
		}
		for _, c := range calls {
			if !c.waiting && c.ended < 0 {
				limit.End(&c.r)
			}
		}
		for clock.Advance(per); ; clock.Advance(per) { // all that wait get their turn, and then it is empty
			left := false
			for _, c := range calls {
				if c.waiting && c.r.Delay() == 0 {
					c.waiting = false
					limit.Begin(&c.r)
					limit.End(&c.r)
				}
				left = left || c.waiting
			}
			if !left {
				break
			}
		}
		clock.Advance(per)
		require.Equal(t, float64(n), l.Stored(), "run %d", run)
	}
}

// A margin stands for the flight: Begin and End do nothing.
func TestMarginIsTheFlight(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := reserve.Must(window.New(1, time.Second, window.WithMargin(100*time.Millisecond), reserve.WithClock(clock)))
	r, _ := l.Reserve(ctx, 1)
	limit.Begin(&r)
	clock.Advance(1100 * time.Millisecond)
	require.True(t, l.TryAcquire(1))
	limit.End(&r)
	clock.Advance(1100 * time.Millisecond)
	require.True(t, l.TryAcquire(1))
}

// A promise that a change of the window keeps does not know of calls that are out: they would exceed the old one too.
func TestUseEndsAKeptPromise(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := reserve.Must(window.New(3, time.Second, reserve.WithClock(clock)))
	out := reserve.Must(l.Reserve(t.Context(), 3))
	waiting := reserve.Must(l.Reserve(t.Context(), 1))
	require.NoError(t, l.SetRate(reserve.Per(3, time.Minute)))
	require.Equal(t, time.Second, waiting.Delay())
	limit.Begin(&out)
	clock.Advance(time.Second)
	require.Equal(t, time.Minute, waiting.Delay())
	limit.End(&out)
	clock.Advance(time.Minute - 1)
	require.Equal(t, time.Nanosecond, waiting.Delay())
}

// A caller whose time a call's end moves beyond its deadline gives up at once, as after a pause.
func TestUseThatEndsTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := reserve.Must(window.New(1, time.Second))
		out := reserve.Must(l.Reserve(t.Context(), 1))
		begin := time.Now()
		time.Sleep(500 * time.Millisecond)
		limit.Begin(&out)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var waited atomic.Int64
		go func() {
			_, err := l.Acquire(ctx, 1)
			if errors.Is(err, context.DeadlineExceeded) {
				waited.Store(int64(time.Since(begin)))
			}
		}()
		time.Sleep(100 * time.Millisecond)
		limit.End(&out)
		time.Sleep(time.Second)
		require.Equal(t, 600*time.Millisecond, time.Duration(waited.Load()))
	})
}

// A user's promise that embeds a reservation passes the use on to it.
func TestUseOfAnEmbeddedReservation(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := reserve.Must(window.New(1, time.Second, reserve.WithClock(clock)))
	inner, err := l.Reserve(ctx, 1)
	require.NoError(t, err)
	r := reserve.NewReservation(struct {
		*reserve.Reservation
		note string
	}{&inner, "mine"})
	limit.Begin(&r)
	clock.Advance(700 * time.Millisecond)
	limit.End(&r)
	require.Equal(t, time.Second, reserve.Must(l.Peek(1)))
}
