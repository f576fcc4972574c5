package pace_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/warmup"
)

const ms = time.Millisecond

// scene is a limiter on a fake clock.
type scene struct {
	t       *testing.T
	clock   *clockwork.FakeClock
	begin   time.Time
	limiter *reserve.Limiter
}

func newScene(t *testing.T, build func(opts ...reserve.Option) (*reserve.Limiter, error)) *scene {
	clock := clockwork.NewFakeClockAt(time.Unix(1_700_000_000, 0))
	limiter, err := build(reserve.WithClock(clock))
	require.NoError(t, err)
	return &scene{t: t, clock: clock, begin: clock.Now(), limiter: limiter}
}

func burstyScene(t *testing.T, rate float64, options ...reserve.Option) *scene {
	return newScene(t, func(opts ...reserve.Option) (*reserve.Limiter, error) {
		return pace.NewBursty(rate, append(opts, options...)...)
	})
}

// bucketScene is a token bucket, full at the start.
func bucketScene(t *testing.T, rate, capacity float64) *scene {
	return burstyScene(t, rate, pace.WithCapacity(capacity), reserve.WithStored(capacity), reserve.PayUpfront())
}

// flatScene has a store of 15 permits, full, each of which costs what a fresh one does:
// 100 ms. Idleness stores 15/s.
func flatScene(t *testing.T, options ...reserve.Option) *scene {
	return newScene(t, func(opts ...reserve.Option) (*reserve.Limiter, error) {
		return warmup.New(10, time.Second, append(append(opts, warmup.WithColdFactor(1)), options...)...)
	})
}

func (s *scene) reserve(n int) *reserve.Reservation {
	r, err := s.limiter.Reserve(context.Background(), n)
	require.NoError(s.t, err)
	return &r
}

// at is when a reservation may go, from the begin of the scene.
func (s *scene) at(r *reserve.Reservation) time.Duration { return r.At().Sub(s.begin) }

func (s *scene) nextFree() time.Duration {
	return max(s.clock.Since(s.begin), s.limiter.NextFree().Sub(s.begin))
}

func (s *scene) pause(d time.Duration) { s.limiter.PauseUntil(s.clock.Now().Add(d)) }

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
					for limiter, s := range map[string]*scene{
						"bursty":       burstyScene(t, 10),
						"burst 0":      burstyScene(t, 10, pace.WithBurst(0)),
						"token bucket": bucketScene(t, 10, 1),
						"warming up": newScene(t, func(o ...reserve.Option) (*reserve.Limiter, error) {
							return warmup.New(10, time.Second, append(o, reserve.WithStored(0))...)
						}),
						"larger bucket": bucketScene(t, 10, 5),
					} {
						first := 1
						if limiter == "larger bucket" {
							first = 5
						}
						require.Zero(t, s.at(s.reserve(first)), limiter) // this one goes
						var queue []*reserve.Reservation
						for i := range 100 {
							queue = append(queue, s.reserve(1+i%sizes))
						}
						require.Greater(t, s.at(queue[99]), 9*time.Second)
						s.clock.Advance(passed)
						for _, i := range order {
							queue[i].Cancel()
						}
						require.Equal(t, 100*ms, s.nextFree(), limiter)
						require.Equal(t, 100*ms, s.at(s.reserve(1)), limiter)
						require.Equal(t, 200*ms, s.at(s.reserve(1)), limiter)
					}
				})
			}
		}
	}
}

// Those behind one who gives up move up, whatever their sizes.
func TestTheQueueMovesUp(t *testing.T) {
	s := burstyScene(t, 10)
	s.reserve(1)
	long, second, third := s.reserve(30), s.reserve(2), s.reserve(1)
	require.Equal(t, 3100*ms, s.at(second))
	require.Equal(t, 3300*ms, s.at(third))
	s.clock.Advance(50 * ms)
	long.Settle(10)
	require.Equal(t, 100*ms, s.at(long), "it keeps its place")
	require.Equal(t, 1100*ms, s.at(second))
	require.Equal(t, 1300*ms, s.at(third))
	second.Cancel()
	require.Equal(t, 1100*ms, s.at(third))
	s.clock.Advance(150 * ms) // the long one has gone
	require.Equal(t, 1100*ms, s.at(third))
}

// A request that has gone turns out to come to less: those who wait for it go sooner, at once if it
// was that which they waited for.
func TestSettlingLessLetsTheQueueGo(t *testing.T) {
	s := burstyScene(t, 10, pace.WithCapacity(10))
	gone := s.reserve(50)
	first, second := s.reserve(5), s.reserve(1)
	require.Equal(t, 5*time.Second, s.at(first))
	s.clock.Advance(300 * ms)
	gone.Settle(2) // 200 ms, so that 100 ms are saved up by now
	require.Equal(t, 300*ms, s.at(first))
	require.Equal(t, 700*ms, s.at(second), "five cost 500 ms, and 100 ms are there")
	require.Zero(t, first.Delay())
	s.clock.Advance(time.Second)
	require.Equal(t, 300*ms, s.at(first), "after it went it is told no other time")
}

// What comes back late is worth what would still be there.
func TestLateReturnsAreWorthWhatWouldStillBeThere(t *testing.T) {
	t.Run("nothing spilled", func(t *testing.T) {
		s := burstyScene(t, 10, pace.WithCapacity(10), reserve.WithStored(10))
		r := s.reserve(6)
		require.True(t, s.limiter.TryAcquire(4))
		s.clock.Advance(400 * ms)
		r.Cancel() // a limiter that had never granted the 6 has 10 now
		require.InDelta(t, 10, s.limiter.Stored(), 1e-6)
	})
	t.Run("two spilled", func(t *testing.T) {
		s := burstyScene(t, 10, pace.WithCapacity(10), reserve.WithStored(10))
		r := s.reserve(6)
		s.clock.Advance(400 * ms)
		require.InDelta(t, 8, s.limiter.Stored(), 1e-6)
		require.True(t, s.limiter.TryAcquire(8))
		r.Cancel() // without it 10 had been there, of which 8 went
		require.InDelta(t, 2, s.limiter.Stored(), 1e-6)
	})
	t.Run("all spilled", func(t *testing.T) {
		s := burstyScene(t, 10, pace.WithCapacity(10), reserve.WithStored(10))
		r := s.reserve(6)
		s.clock.Advance(time.Second)
		require.True(t, s.limiter.TryAcquire(10))
		r.Cancel()
		require.Zero(t, s.limiter.Stored())
		require.Equal(t, time.Second, s.nextFree())
	})
	t.Run("nothing is saved up", func(t *testing.T) {
		s := burstyScene(t, 10, pace.WithBurst(0))
		r := s.reserve(5)
		s.clock.Advance(700 * ms)
		r.Cancel()
		require.Equal(t, 700*ms, s.at(s.reserve(1)))
		require.Equal(t, 800*ms, s.nextFree())
	})
	t.Run("upfront, larger than the store", func(t *testing.T) {
		s := bucketScene(t, 10, 10)
		r := s.reserve(25)
		require.Equal(t, 1500*ms, s.at(r))
		s.clock.Advance(1500 * ms)
		r.Settle(4) // the store could not have held more than 10 of the 25
		require.InDelta(t, 6, s.limiter.Stored(), 1e-6)
	})
	t.Run("granted at once, in any order", func(t *testing.T) {
		for name, order := range orders(4) {
			s := burstyScene(t, 10, pace.WithCapacity(10), reserve.WithStored(10))
			var all []*reserve.Reservation
			for _, n := range []int{2, 3, 1, 2} {
				all = append(all, s.reserve(n))
			}
			s.reserve(1)
			s.clock.Advance(50 * ms)
			for _, i := range order {
				all[i].Cancel()
			}
			require.InDelta(t, 9.5, s.limiter.Stored(), 1e-6, name)
		}
	})
}

// golang.org/x/time/rate's own sequences, from its rate_test.go. There the last times are those in the
// comments, because what is given back is held against those who wait.
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
			s := bucketScene(t, 10, c.burst)
			var all []*reserve.Reservation
			until := func(tenth int) { s.clock.Advance(time.Duration(tenth)*100*ms - s.clock.Since(s.begin)) }
			for _, step := range c.steps {
				switch step := step.(type) {
				case request:
					until(step.at)
					r := s.reserve(step.n)
					require.Equal(t, time.Duration(step.want)*100*ms, s.at(r))
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
		s := burstyScene(t, 10)
		due, next := s.reserve(1), s.reserve(1)
		s.pause(time.Second)
		require.Zero(t, s.at(due))
		require.Equal(t, 1100*ms, s.at(next))
		s.clock.Advance(1100 * ms)
		s.pause(time.Second) // begins when it is due
		require.Equal(t, 1100*ms, s.at(next))
	})
	t.Run("what is reserved during it is due at its end", func(t *testing.T) {
		s := burstyScene(t, 10)
		s.pause(time.Second)
		first, second := s.reserve(1), s.reserve(1)
		require.False(t, s.limiter.TryAcquire(1))
		require.Equal(t, 1000*ms, s.at(first))
		require.Equal(t, 1100*ms, s.at(second))
		require.Equal(t, 1200*ms, s.nextFree())
	})
	t.Run("a later one extends it, an earlier one changes nothing", func(t *testing.T) {
		s := burstyScene(t, 10)
		s.reserve(1)
		before := s.reserve(1)
		s.pause(time.Second)
		during := s.reserve(1)
		s.pause(2 * time.Second)
		s.pause(500 * ms)
		s.limiter.PauseUntil(s.begin.Add(-time.Hour))
		require.Equal(t, 2100*ms, s.at(before))
		require.Equal(t, 2200*ms, s.at(during))
		s.clock.Advance(2 * time.Second)
		require.Zero(t, s.limiter.Stored(), "nothing is saved up")
		require.Equal(t, 2300*ms, s.nextFree())
	})
	t.Run("cancelled during it, reserved before", func(t *testing.T) {
		s := burstyScene(t, 10)
		s.reserve(1)
		second, third := s.reserve(1), s.reserve(1)
		s.pause(time.Second)
		second.Cancel()
		require.Equal(t, 1100*ms, s.at(third))
		require.Equal(t, 1200*ms, s.nextFree())
	})
	t.Run("cancelled during it, gone before", func(t *testing.T) {
		s := burstyScene(t, 10)
		gone, next := s.reserve(9), s.reserve(1)
		s.clock.Advance(50 * ms)
		s.pause(time.Second)
		gone.Cancel()
		require.Equal(t, 1050*ms, s.at(next), "not before the end of the pause")
	})
	t.Run("cancelled during it, reserved during it", func(t *testing.T) {
		s := burstyScene(t, 10, reserve.WithStored(2))
		s.pause(time.Second)
		first, second := s.reserve(3), s.reserve(1)
		require.Equal(t, 1000*ms, s.at(first))
		require.Equal(t, 1100*ms, s.at(second))
		first.Cancel()
		require.Equal(t, 1000*ms, s.at(second))
		require.Equal(t, 1000*ms, s.nextFree())
		second.Cancel()
		require.InDelta(t, 2, s.limiter.Stored(), 1e-9)
	})
	t.Run("cancelled at its end", func(t *testing.T) {
		s := burstyScene(t, 10)
		s.pause(time.Second)
		first, second := s.reserve(1), s.reserve(1)
		s.clock.Advance(time.Second)
		require.Zero(t, first.Delay())
		first.Cancel()
		require.Equal(t, 1000*ms, s.at(second))
		require.Equal(t, 1100*ms, s.nextFree())
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
			s := burstyScene(t, 10)
			r := s.reserve(5)
			c.do(r)
			require.Equal(t, c.nextFree, s.nextFree())
			require.Equal(t, 5, r.Permits())
			require.Zero(t, s.at(r), "it has gone")
		})
		t.Run(c.name+", while it waits", func(t *testing.T) {
			s := burstyScene(t, 10)
			s.reserve(1)
			r, live := s.reserve(5), s.reserve(1)
			c.do(r)
			require.Equal(t, 100*ms+min(c.nextFree, 500*ms), s.at(live), "nobody who waits pays for more")
			require.Equal(t, 200*ms+c.nextFree, s.nextFree(), "the next one does")
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
		s := burstyScene(t, 10)
		s.reserve(1)
		r := s.reserve(1)
		r.Settle(0)
		require.ErrorIs(t, r.Wait(t.Context()), reserve.ErrCancelled)
	})
}

func TestGivingBackAfterSetRate(t *testing.T) {
	t.Run("those who wait keep their times, in order", func(t *testing.T) {
		s := burstyScene(t, 10)
		s.reserve(1)
		second, third := s.reserve(1), s.reserve(1)
		require.NoError(t, s.limiter.SetRate(100))
		fourth := s.reserve(1)
		require.Equal(t, 300*ms, s.at(fourth), "debt keeps its time")
		second.Cancel()
		require.Equal(t, 100*ms, s.at(third))
		require.Equal(t, 200*ms, s.at(fourth), "a permit is worth what it was sold for")
		require.Equal(t, 210*ms, s.nextFree())
	})
	t.Run("what is stored scales, and what comes back", func(t *testing.T) {
		s := burstyScene(t, 10, reserve.WithStored(8))
		r := s.reserve(4)
		require.NoError(t, s.limiter.SetRate(20))
		require.InDelta(t, 8, s.limiter.Stored(), 1e-6)
		r.Cancel()
		require.InDelta(t, 16, s.limiter.Stored(), 1e-6)
	})
	t.Run("not with a capacity in permits", func(t *testing.T) {
		s := burstyScene(t, 10, pace.WithCapacity(10), reserve.WithStored(8))
		r := s.reserve(4)
		require.NoError(t, s.limiter.SetRate(20))
		require.InDelta(t, 4, s.limiter.Stored(), 1e-6)
		r.Cancel()
		require.InDelta(t, 8, s.limiter.Stored(), 1e-6)
	})
}

// A warming-up limiter's slots keep their lengths; what they took from the store returns there.
func TestGivingBackWhileWarmingUp(t *testing.T) {
	t.Run("the stored permits, at once", func(t *testing.T) {
		s := flatScene(t)
		s.reserve(1)
		second, third := s.reserve(8), s.reserve(1)
		require.InDelta(t, 5, s.limiter.Stored(), 1e-9)
		second.Cancel()
		require.InDelta(t, 13, s.limiter.Stored(), 1e-9)
		require.Equal(t, 100*ms, s.at(third))
	})
	t.Run("the newest, with its time", func(t *testing.T) {
		s := flatScene(t, reserve.WithStored(5))
		r := s.reserve(5)
		s.clock.Advance(200 * ms)
		r.Cancel()
		require.InDelta(t, 8, s.limiter.Stored(), 1e-6)
		require.Equal(t, 200*ms, s.nextFree())
	})
	t.Run("an older one, without", func(t *testing.T) {
		s := flatScene(t, reserve.WithStored(5))
		r, next := s.reserve(5), s.reserve(1)
		s.clock.Advance(200 * ms)
		r.Cancel()
		require.InDelta(t, 5, s.limiter.Stored(), 1e-6)
		require.Equal(t, 200*ms, s.at(next))
	})
	t.Run("granted at once, when it is over", func(t *testing.T) {
		s := flatScene(t, reserve.WithStored(5))
		r := s.reserve(1)
		s.clock.Advance(300 * ms)
		r.Cancel() // 0.2 s of idleness have stored 3, and its own one returns
		require.InDelta(t, 8, s.limiter.Stored(), 1e-6)
	})
}

// An asker is a reserver that asks a limiter for somebody else before it grants everything.
type asker struct{ ask func() }

func (a asker) ReserveWithin(context.Context, int, time.Duration) (reserve.Reservation, error) {
	a.ask()
	l, err := pace.NewBursty(math.Inf(1))
	if err != nil {
		return reserve.Reservation{}, err
	}
	return l.Reserve(context.Background(), 1)
}

// A refusal leaves those who were asked as if they never had been, and also whoever asked them in
// between.
func TestAllThatRefusesLeavesNoTrace(t *testing.T) {
	for name, s := range map[string]*scene{
		"bursty":       burstyScene(t, 10, pace.WithCapacity(5), reserve.WithStored(3)),
		"burst 0":      burstyScene(t, 10, pace.WithBurst(0)),
		"token bucket": bucketScene(t, 10, 3),
	} {
		t.Run(name, func(t *testing.T) {
			s.reserve(3)
			s.reserve(1)
			var between *reserve.Reservation
			busy, err := pace.NewBursty(1, reserve.WithClock(s.clock))
			require.NoError(t, err)
			require.True(t, busy.TryAcquire(60))
			free := s.nextFree()
			_, err = reserve.All(s.limiter, asker{func() { between = s.reserve(1) }}, busy).ReserveWithin(t.Context(), 2, time.Second)
			require.Error(t, err)
			require.Equal(t, free, s.at(between))
			require.Equal(t, free+100*ms, s.nextFree())
		})
	}
}
