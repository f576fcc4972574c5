package conform

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/warmup"
)

const ms = time.Millisecond

// flat has a store of 15 permits, full, each of which costs what a fresh one does:
// 100 ms. Idleness stores 15/s.
func flat(t *testing.T, options ...reserve.Option) *limitertest.Bench {
	return limitertest.WarmingUp(t, 10, time.Second, append(options, warmup.WithColdFactor(1))...)
}

// orders are ways to go through n things.
func orders(n int) map[string][]int {
	all := map[string][]int{"oldest first": nil, "newest first": nil}
	for i := range n {
		all["oldest first"] = append(all["oldest first"], i)
		all["newest first"] = append(all["newest first"], n-1-i)
	}
	for seed := range uint64(5) {
		all[fmt.Sprint("random ", seed)] = rand.New(rand.NewPCG(seed, 0)).Perm(n)
	}
	return all
}

// A hundred callers queue and all give up: the next one waits for one permit.
func TestGhosts(t *testing.T) {
	for name, order := range orders(100) {
		for _, sizes := range []int{1, 7} {
			for _, passed := range []time.Duration{0, 30 * ms} {
				t.Run(fmt.Sprint(name, ", sizes to ", sizes, ", after ", passed), func(t *testing.T) {
					for limiter, s := range map[string]*limitertest.Bench{
						"bursty":        limitertest.Bursty(t, 10),
						"burst 0":       limitertest.Bursty(t, 10, pace.WithBurst(0)),
						"token bucket":  limitertest.TokenBucket(t, 10, 1),
						"warming up":    limitertest.WarmingUp(t, 10, time.Second, reserve.WithStored(0)),
						"larger bucket": limitertest.TokenBucket(t, 10, 5),
					} {
						first := 1
						if limiter == "larger bucket" {
							first = 5
						}
						require.Zero(t, s.At(s.Take(first)), limiter) // this one goes
						var queue []*reserve.Reservation
						for i := range 100 {
							queue = append(queue, s.Take(1+i%sizes))
						}
						require.Greater(t, s.At(queue[99]), 9*time.Second)
						s.Advance(passed)
						for _, i := range order {
							queue[i].Cancel()
						}
						require.Equal(t, 100*ms, s.FreeAt(), limiter)
						require.Equal(t, 100*ms, s.At(s.Take(1)), limiter)
						require.Equal(t, 200*ms, s.At(s.Take(1)), limiter)
					}
				})
			}
		}
	}
}

// Those behind one who gives up move up, whatever their sizes.
func TestTheQueueMovesUp(t *testing.T) {
	s := limitertest.Bursty(t, 10)
	s.Take(1)
	long, second, third := s.Take(30), s.Take(2), s.Take(1)
	require.Equal(t, 3100*ms, s.At(second))
	require.Equal(t, 3300*ms, s.At(third))
	s.Advance(50 * ms)
	long.Settle(10)
	require.Equal(t, 100*ms, s.At(long), "it keeps its place")
	require.Equal(t, 1100*ms, s.At(second))
	require.Equal(t, 1300*ms, s.At(third))
	second.Cancel()
	require.Equal(t, 1100*ms, s.At(third))
	s.Advance(150 * ms) // the long one was granted
	require.Equal(t, 1100*ms, s.At(third))
}

// A granted request turns out to cost less. Requests that wait for it go sooner, at once if they waited for nothing
// else.
func TestSettlingLessLetsTheQueueGo(t *testing.T) {
	s := limitertest.Bursty(t, 10, pace.WithCapacity(10))
	gone := s.Take(50)
	first, second := s.Take(5), s.Take(1)
	require.Equal(t, 5*time.Second, s.At(first))
	s.Advance(300 * ms)
	gone.Settle(2) // 200 ms, so that 100 ms are saved up by now
	require.Equal(t, 300*ms, s.At(first))
	require.Equal(t, 700*ms, s.At(second), "five cost 500 ms, and 100 ms are there")
	require.Zero(t, first.Delay())
	s.Advance(time.Second)
	require.Equal(t, 300*ms, s.At(first), "after it went it is told no other time")
}

// What comes back late is worth what would still be there.
func TestLateReturnsAreWorthWhatWouldStillBeThere(t *testing.T) {
	t.Run("nothing spilled", func(t *testing.T) {
		s := limitertest.Bursty(t, 10, pace.WithCapacity(10), reserve.WithStored(10))
		r := s.Take(6)
		require.True(t, s.TryAcquire(4))
		s.Advance(400 * ms)
		r.Cancel() // a limiter that had never granted the 6 has 10 now
		require.InDelta(t, 10, s.Stored(), 1e-6)
	})
	t.Run("two spilled", func(t *testing.T) {
		s := limitertest.Bursty(t, 10, pace.WithCapacity(10), reserve.WithStored(10))
		r := s.Take(6)
		s.Advance(400 * ms)
		require.InDelta(t, 8, s.Stored(), 1e-6)
		require.True(t, s.TryAcquire(8))
		r.Cancel() // without it 10 had been there, of which 8 went
		require.InDelta(t, 2, s.Stored(), 1e-6)
	})
	t.Run("all spilled", func(t *testing.T) {
		s := limitertest.Bursty(t, 10, pace.WithCapacity(10), reserve.WithStored(10))
		r := s.Take(6)
		s.Advance(time.Second)
		require.True(t, s.TryAcquire(10))
		r.Cancel()
		require.Zero(t, s.Stored())
		require.Equal(t, time.Second, s.FreeAt())
	})
	t.Run("nothing is saved up", func(t *testing.T) {
		s := limitertest.Bursty(t, 10, pace.WithBurst(0))
		r := s.Take(5)
		s.Advance(700 * ms)
		r.Cancel()
		require.Equal(t, 700*ms, s.At(s.Take(1)))
		require.Equal(t, 800*ms, s.FreeAt())
	})
	t.Run("upfront, larger than the store", func(t *testing.T) {
		s := limitertest.TokenBucket(t, 10, 10)
		r := s.Take(25)
		require.Equal(t, 1500*ms, s.At(r))
		s.Advance(1500 * ms)
		r.Settle(4) // the store could not have held more than 10 of the 25
		require.InDelta(t, 6, s.Stored(), 1e-6)
	})
	t.Run("granted at once, in any order", func(t *testing.T) {
		for name, order := range orders(4) {
			s := limitertest.Bursty(t, 10, pace.WithCapacity(10), reserve.WithStored(10))
			var all []*reserve.Reservation
			for _, n := range []int{2, 3, 1, 2} {
				all = append(all, s.Take(n))
			}
			s.Take(1)
			s.Advance(50 * ms)
			for _, i := range order {
				all[i].Cancel()
			}
			require.InDelta(t, 9.5, s.Stored(), 1e-6, name)
		}
	})
}

// golang.org/x/time/rate's own sequences, from its rate_test.go. There the last times are those in the comments,
// because what is given back is held against waiting requests.
func TestXTimeSequences(t *testing.T) {
	type request struct{ at, n, want int } // times in tenths of a second
	type cancel struct{ at, which int }
	for _, c := range []struct {
		name  string
		burst float64
		steps []any
	}{
		{"TestSimpleReserve", 2, []any{request{0, 2, 0}, request{0, 2, 2}, request{3, 2, 4}}},
		{"TestCancelInvalid", 2, []any{request{0, 2, 0}, request{0, 3, 3}, cancel{0, 1}, request{0, 2, 2}}},
		{"TestCancelLast", 2, []any{request{0, 2, 0}, request{0, 2, 2}, cancel{1, 1}, request{1, 2, 2}}},
		{"TestCancelTooLate", 2, []any{request{0, 2, 0}, request{0, 2, 2}, cancel{3, 1}, request{3, 2, 3}}},                                                 // t4
		{"TestCancel0Tokens", 2, []any{request{0, 2, 0}, request{0, 1, 1}, request{0, 1, 2}, cancel{0, 1}, request{0, 1, 2}}},                               // t3
		{"TestCancel1Token", 2, []any{request{0, 2, 0}, request{0, 2, 2}, request{0, 1, 3}, cancel{2, 1}, request{2, 2, 3}}},                                // t4
		{"TestCancelMulti", 4, []any{request{0, 4, 0}, request{0, 3, 3}, request{0, 1, 4}, request{0, 1, 5}, cancel{1, 3}, cancel{1, 1}, request{1, 3, 4}}}, // t5
	} {
		t.Run(c.name, func(t *testing.T) {
			s := limitertest.TokenBucket(t, 10, c.burst)
			var all []*reserve.Reservation
			until := func(tenth int) { s.Advance(time.Duration(tenth)*100*ms - s.Since(s.Begin)) }
			for _, step := range c.steps {
				switch step := step.(type) {
				case request:
					until(step.at)
					r := s.Take(step.n)
					require.Equal(t, time.Duration(step.want)*100*ms, s.At(r))
					all = append(all, r)
				case cancel:
					until(step.at)
					all[step.which].Cancel()
				}
			}
		})
	}
}

func TestPauseAndGivingBack(t *testing.T) {
	t.Run("what was due stays due", func(t *testing.T) {
		s := limitertest.Bursty(t, 10)
		due, next := s.Take(1), s.Take(1)
		s.Pause(time.Second)
		require.Zero(t, s.At(due))
		require.Equal(t, 1100*ms, s.At(next))
		s.Advance(1100 * ms)
		s.Pause(time.Second) // begins when it is due
		require.Equal(t, 1100*ms, s.At(next))
	})
	t.Run("what is reserved during it is due at its end", func(t *testing.T) {
		s := limitertest.Bursty(t, 10)
		s.Pause(time.Second)
		first, second := s.Take(1), s.Take(1)
		require.False(t, s.TryAcquire(1))
		require.Equal(t, 1000*ms, s.At(first))
		require.Equal(t, 1100*ms, s.At(second))
		require.Equal(t, 1200*ms, s.FreeAt())
	})
	t.Run("a later one extends it, an earlier one changes nothing", func(t *testing.T) {
		s := limitertest.Bursty(t, 10)
		s.Take(1)
		before := s.Take(1)
		s.Pause(time.Second)
		during := s.Take(1)
		s.Pause(2 * time.Second)
		s.Pause(500 * ms)
		s.PauseUntil(s.Begin.Add(-time.Hour))
		require.Equal(t, 2100*ms, s.At(before))
		require.Equal(t, 2200*ms, s.At(during))
		s.Advance(2 * time.Second)
		require.Zero(t, s.Stored(), "nothing is saved up")
		require.Equal(t, 2300*ms, s.FreeAt())
	})
	t.Run("cancelled during it, reserved before", func(t *testing.T) {
		s := limitertest.Bursty(t, 10)
		s.Take(1)
		second, third := s.Take(1), s.Take(1)
		s.Pause(time.Second)
		second.Cancel()
		require.Equal(t, 1100*ms, s.At(third))
		require.Equal(t, 1200*ms, s.FreeAt())
	})
	t.Run("cancelled during it, gone before", func(t *testing.T) {
		s := limitertest.Bursty(t, 10)
		gone, next := s.Take(9), s.Take(1)
		s.Advance(50 * ms)
		s.Pause(time.Second)
		gone.Cancel()
		require.Equal(t, 1050*ms, s.At(next), "not before the end of the pause")
	})
	t.Run("cancelled during it, reserved during it", func(t *testing.T) {
		s := limitertest.Bursty(t, 10, reserve.WithStored(2))
		s.Pause(time.Second)
		first, second := s.Take(3), s.Take(1)
		require.Equal(t, 1000*ms, s.At(first))
		require.Equal(t, 1100*ms, s.At(second))
		first.Cancel()
		require.Equal(t, 1000*ms, s.At(second))
		require.Equal(t, 1000*ms, s.FreeAt())
		second.Cancel()
		require.InDelta(t, 2, s.Stored(), 1e-9)
	})
	t.Run("cancelled at its end", func(t *testing.T) {
		s := limitertest.Bursty(t, 10)
		s.Pause(time.Second)
		first, second := s.Take(1), s.Take(1)
		s.Advance(time.Second)
		require.Zero(t, first.Delay())
		first.Cancel()
		require.Equal(t, 1000*ms, s.At(second))
		require.Equal(t, 1100*ms, s.FreeAt())
	})
}

func TestSettle(t *testing.T) {
	settle := func(actual ...int) func(*reserve.Reservation) {
		return func(r *reserve.Reservation) {
			for _, n := range actual {
				r.Settle(n)
			}
		}
	}
	for _, c := range []struct {
		name     string
		do       func(r *reserve.Reservation)
		nextFree time.Duration // after a reservation of 5 at 10/s
	}{
		{"as much", settle(5), 500 * ms},
		{"more", settle(25), 2500 * ms},
		{"less", settle(2), 200 * ms},
		{"nothing", settle(0), 0},
		{"a negative number", settle(-3), 0},
		{"the smallest number", settle(math.MinInt), 0},
		{"more, then less", settle(6, 1), 600 * ms},
		{"less, then more", settle(1, 60), 100 * ms},
		{"as much, then nothing", settle(5, 0), 500 * ms},
		{"less, then cancelled", func(r *reserve.Reservation) { r.Settle(2); r.Cancel() }, 200 * ms},
		{"cancelled, then more", func(r *reserve.Reservation) { r.Cancel(); r.Settle(60) }, 0},
		{"cancelled twice", func(r *reserve.Reservation) { r.Cancel(); r.Cancel() }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := limitertest.Bursty(t, 10)
			r := s.Take(5)
			c.do(r)
			require.Equal(t, c.nextFree, s.FreeAt())
			require.Equal(t, 5, r.Permits())
			require.Zero(t, s.At(r), "it was granted")
		})
		t.Run(c.name+", while it waits", func(t *testing.T) {
			s := limitertest.Bursty(t, 10)
			s.Take(1)
			r, live := s.Take(5), s.Take(1)
			c.do(r)
			require.Equal(t, 100*ms+min(c.nextFree, 500*ms), s.At(live), "no waiting request pays for more")
			require.Equal(t, 200*ms+c.nextFree, s.FreeAt(), "the next one does")
		})
	}
	t.Run("the zero reservation", func(t *testing.T) {
		var r reserve.Reservation
		r.Settle(3)
		r.Cancel()
		require.Zero(t, r.Delay())
		require.ErrorIs(t, r.Wait(t.Context()), reserve.ErrCancelled)
	})
	t.Run("cancelled, it waits for nothing", func(t *testing.T) {
		s := limitertest.Bursty(t, 10)
		s.Take(1)
		r := s.Take(1)
		r.Settle(0)
		require.ErrorIs(t, r.Wait(t.Context()), reserve.ErrCancelled)
	})
}

func TestGivingBackAfterSetRate(t *testing.T) {
	t.Run("waiting requests keep their times, in order", func(t *testing.T) {
		s := limitertest.Bursty(t, 10)
		s.Take(1)
		second, third := s.Take(1), s.Take(1)
		require.NoError(t, s.SetRate(100))
		fourth := s.Take(1)
		require.Equal(t, 300*ms, s.At(fourth), "debt keeps its time")
		second.Cancel()
		require.Equal(t, 100*ms, s.At(third))
		require.Equal(t, 200*ms, s.At(fourth), "a permit is worth what it was sold for")
		require.Equal(t, 210*ms, s.FreeAt())
	})
	t.Run("what is stored scales, and what comes back", func(t *testing.T) {
		s := limitertest.Bursty(t, 10, reserve.WithStored(8))
		r := s.Take(4)
		require.NoError(t, s.SetRate(20))
		require.InDelta(t, 8, s.Stored(), 1e-6)
		r.Cancel()
		require.InDelta(t, 16, s.Stored(), 1e-6)
	})
	t.Run("not with a capacity in permits", func(t *testing.T) {
		s := limitertest.Bursty(t, 10, pace.WithCapacity(10), reserve.WithStored(8))
		r := s.Take(4)
		require.NoError(t, s.SetRate(20))
		require.InDelta(t, 4, s.Stored(), 1e-6)
		r.Cancel()
		require.InDelta(t, 8, s.Stored(), 1e-6)
	})
}

// A warming-up limiter's slots keep their lengths; what they took from the store returns there.
func TestGivingBackWhileWarmingUp(t *testing.T) {
	t.Run("the stored permits, at once", func(t *testing.T) {
		s := flat(t)
		s.Take(1)
		second, third := s.Take(8), s.Take(1)
		require.InDelta(t, 5, s.Stored(), 1e-9)
		second.Cancel()
		require.InDelta(t, 13, s.Stored(), 1e-9)
		require.Equal(t, 100*ms, s.At(third))
	})
	t.Run("the newest, without its time", func(t *testing.T) {
		s := flat(t, reserve.WithStored(5))
		r := s.Take(5)
		s.Advance(200 * ms)
		r.Cancel()
		require.InDelta(t, 5, s.Stored(), 1e-6)
		require.Equal(t, 200*ms, s.FreeAt())
	})
	t.Run("an older one, too", func(t *testing.T) {
		s := flat(t, reserve.WithStored(5))
		r, next := s.Take(5), s.Take(1)
		s.Advance(200 * ms)
		r.Cancel()
		require.InDelta(t, 5, s.Stored(), 1e-6)
		require.Equal(t, 200*ms, s.At(next))
	})
	t.Run("granted at once, when it is over", func(t *testing.T) {
		s := flat(t, reserve.WithStored(5))
		r := s.Take(1)
		s.Advance(300 * ms)
		r.Cancel() // 0.2 s of idleness have stored 3, and its own one returns
		require.InDelta(t, 8, s.Stored(), 1e-6)
	})
	t.Run("as far as they fit", func(t *testing.T) {
		s := flat(t)
		full := s.Stored()
		before := s.Take(3)
		s.Advance(time.Minute)
		require.Equal(t, full, s.Stored())
		since := s.Take(2)
		before.Cancel() // without it, three would have overflowed since
		require.InDelta(t, full-2, s.Stored(), 1e-9)
		since.Cancel()
		require.InDelta(t, full, s.Stored(), 1e-9)
	})
}

// An asker is a reserver that asks a limiter in between, and then grants everything.
type asker struct{ ask func() }

func (a asker) ReserveWithin(context.Context, int, time.Duration) (reserve.Reservation, error) {
	a.ask()
	l, err := pace.NewBursty(math.Inf(1))
	if err != nil {
		return reserve.Reservation{}, err
	}
	return l.Reserve(context.Background(), 1)
}

// A refusal leaves the limiters that were asked as if they never had been, and also callers that asked them in between.
func TestAllThatRefusesLeavesNoTrace(t *testing.T) {
	for name, s := range map[string]*limitertest.Bench{
		"bursty":       limitertest.Bursty(t, 10, pace.WithCapacity(5), reserve.WithStored(3)),
		"burst 0":      limitertest.Bursty(t, 10, pace.WithBurst(0)),
		"token bucket": limitertest.TokenBucket(t, 10, 3),
	} {
		t.Run(name, func(t *testing.T) {
			s.Take(3)
			s.Take(1)
			var between *reserve.Reservation
			busy, err := pace.NewBursty(1, reserve.WithClock(s.FakeClock))
			require.NoError(t, err)
			require.True(t, busy.TryAcquire(60))
			free := s.FreeAt()
			_, err = reserve.All(s.Limiter, asker{func() { between = s.Take(1) }}, busy).ReserveWithin(t.Context(), 2, time.Second)
			require.ErrorAs(t, err, new(*reserve.WaitError))
			require.Equal(t, free, s.At(between))
			require.Equal(t, free+100*ms, s.FreeAt())
		})
	}
}
