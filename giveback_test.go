package pace_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/warmup"
)

// scene is a limiter on a fake clock, with what was reserved from it.
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
	all := map[string][]int{"first in first": nil, "last in first": nil}
	for i := range n {
		all["first in first"] = append(all["first in first"], i)
		all["last in first"] = append(all["last in first"], n-1-i)
	}
	for seed := range uint64(5) {
		all[fmt.Sprint("random ", seed)] = rand.New(rand.NewPCG(seed, 0)).Perm(n)
	}
	return all
}

func TestAHundredGiveUp(t *testing.T) {
	for name, order := range orders(100) {
		t.Run(name, func(t *testing.T) {
			s := burstyScene(t, 10)
			require.Zero(t, s.at(s.reserve(1))) // this one goes
			var queue []*reserve.Reservation
			for range 100 {
				queue = append(queue, s.reserve(1))
			}
			require.Equal(t, 10*time.Second, s.at(queue[99]))
			for _, i := range order {
				queue[i].Cancel()
			}
			require.Equal(t, 100*time.Millisecond, s.nextFree())
			require.Equal(t, 100*time.Millisecond, s.at(s.reserve(1)))
			require.Equal(t, 200*time.Millisecond, s.at(s.reserve(1)))
		})
	}
}

// Callers come faster than the rate, and half of them give up before their turn.
func TestSaturatedWhileHalfGiveUp(t *testing.T) {
	for _, rate := range []float64{100, 30, 7.7} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			s := burstyScene(t, rate, pace.WithBurst(0))
			period := time.Duration(1e9 / rate)
			random := rand.New(rand.NewPCG(7, 7))
			var stay, leave []*reserve.Reservation
			for range 5000 {
				if r := s.reserve(1); random.IntN(2) == 0 {
					leave = append(leave, r)
				} else {
					stay = append(stay, r)
				}
				if len(leave) > 20 {
					i := random.IntN(len(leave))
					if leave[i].Delay() > 0 {
						leave[i].Cancel()
					} else {
						stay = append(stay, leave[i]) // its turn came first
					}
					leave = slices.Delete(leave, i, i+1)
				}
				s.clock.Advance(period * 2 / 5)
			}
			now := s.clock.Since(s.begin)
			slices.SortFunc(stay, func(a, b *reserve.Reservation) int { return a.At().Compare(b.At()) })
			gone := 0
			for i, r := range stay {
				if s.at(r) <= now {
					gone++
				}
				if i > 0 { // a period is no whole number of nanoseconds
					require.GreaterOrEqual(t, s.at(r)-s.at(stay[i-1]), period-1)
				}
			}
			require.GreaterOrEqual(t, float64(gone), 0.99*rate*now.Seconds())
		})
	}
}

func TestGrantedAtOnceAndCancelledIsGivenBack(t *testing.T) {
	granted := []int{2, 3, 1, 2}
	for name, order := range orders(len(granted)) {
		for _, idle := range []time.Duration{0, 50 * time.Millisecond} {
			t.Run(fmt.Sprint(name, " after ", idle), func(t *testing.T) {
				s := burstyScene(t, 10, pace.WithCapacity(10), reserve.WithStored(10))
				var all []*reserve.Reservation
				for _, n := range granted {
					all = append(all, s.reserve(n))
				}
				live := s.reserve(1)
				require.Zero(t, s.at(live))
				for _, i := range order {
					all[i].Cancel()
				}
				require.InDelta(t, 9, s.limiter.Stored(), 1e-9)
				s.clock.Advance(idle)
				require.InDelta(t, 9+10*idle.Seconds(), s.limiter.Stored(), 1e-9)
			})
		}
	}
}

// With a queue behind them they are kept aside until it is over.
func TestGrantedAtOnceAndCancelledWhileInDebt(t *testing.T) {
	for name, order := range orders(3) {
		t.Run(name, func(t *testing.T) {
			s := burstyScene(t, 10, pace.WithCapacity(10), reserve.WithStored(10))
			all := []*reserve.Reservation{s.reserve(3), s.reserve(3), s.reserve(4)}
			s.reserve(5) // it goes, and the next one waits for it
			for _, i := range order {
				all[i].Cancel()
			}
			require.Zero(t, s.limiter.Stored(), "spent within the queue they would exceed the rate")
			require.Equal(t, 500*time.Millisecond, s.nextFree())
			s.clock.Advance(500 * time.Millisecond)
			require.InDelta(t, 10, s.limiter.Stored(), 1e-9)
		})
	}
}

// A hundred come back late: the last 64 are remembered exactly.
func TestManyGrantedAtOnceAndCancelled(t *testing.T) {
	s := burstyScene(t, 10, pace.WithCapacity(64), reserve.WithStored(64))
	var all []*reserve.Reservation
	for range 64 {
		all = append(all, s.reserve(1))
	}
	s.reserve(1)
	for _, i := range rand.New(rand.NewPCG(3, 3)).Perm(64) {
		all[i].Cancel()
	}
	s.clock.Advance(100 * time.Millisecond)
	require.InDelta(t, 64, s.limiter.Stored(), 1e-9)
}

func TestLateCancelSpillsWhatTheStoreWouldHave(t *testing.T) {
	s := burstyScene(t, 10, pace.WithCapacity(10), reserve.WithStored(10))
	r := s.reserve(6)
	s.clock.Advance(400 * time.Millisecond)
	require.InDelta(t, 8, s.limiter.Stored(), 1e-9)
	require.True(t, s.limiter.TryAcquire(8))
	r.Cancel() // not 6: 4 of them would have spilled
	require.InDelta(t, 2, s.limiter.Stored(), 1e-9)
}

func TestPauseAndGivingBack(t *testing.T) {
	const ms = time.Millisecond
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
		require.Equal(t, 1200*ms, s.at(third))
		require.Equal(t, 1100*ms, s.at(s.reserve(1)))
		require.Equal(t, 1300*ms, s.nextFree())
	})
	t.Run("cancelled during it, reserved during it", func(t *testing.T) {
		s := burstyScene(t, 10, reserve.WithStored(2))
		s.pause(time.Second)
		first, second := s.reserve(3), s.reserve(1)
		require.Equal(t, 1000*ms, s.at(first))
		require.Equal(t, 1100*ms, s.at(second))
		first.Cancel() // its time is to come, though the limiter's clock says it has
		require.Equal(t, 1000*ms, s.nextFree())
		second.Cancel()
		require.InDelta(t, 2, s.limiter.Stored(), 1e-9)
	})
	t.Run("cancelled at its end", func(t *testing.T) {
		s := burstyScene(t, 10)
		s.pause(time.Second)
		first, second := s.reserve(1), s.reserve(1)
		s.clock.Advance(time.Second)
		first.Cancel() // its time has come, so its slot can't be sold
		require.Equal(t, 1100*ms, s.at(second))
		require.Equal(t, 1200*ms, s.nextFree())
		s.clock.Advance(200 * ms)
		require.InDelta(t, 1, s.limiter.Stored(), 1e-9)
	})
}

func TestSettle(t *testing.T) {
	const ms = time.Millisecond
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
			require.Zero(t, s.at(r), "a promised time does not move")
		})
		t.Run(c.name+", with others around", func(t *testing.T) {
			s := burstyScene(t, 10)
			s.reserve(1)
			r, live := s.reserve(5), s.reserve(1)
			c.do(r)
			require.Equal(t, 600*ms, s.at(live))
			want := 700 * ms
			switch {
			case c.nextFree < 500*ms: // what it had is for sale
				want = 100*ms + c.nextFree
			case c.nextFree > 500*ms:
				want += c.nextFree - 500*ms
			}
			require.Equal(t, want, s.nextFree())
		})
	}
}

func TestReserveInAFreedSlot(t *testing.T) {
	const ms = time.Millisecond
	s := burstyScene(t, 10)
	s.reserve(1)
	long := s.reserve(3)
	live := s.reserve(1)
	long.Cancel()
	require.Equal(t, 500*ms, s.at(s.reserve(4)), "too long for it")
	first, second := s.reserve(1), s.reserve(2)
	require.Equal(t, 100*ms, s.at(first))
	require.Equal(t, 200*ms, s.at(second))
	require.Equal(t, 900*ms, s.nextFree(), "it is full")
	first.Cancel()
	second.Cancel()
	require.Equal(t, 100*ms, s.at(s.reserve(3)), "both are one again")
	require.Equal(t, 900*ms, s.nextFree())
	require.Equal(t, 400*ms, s.at(live))
}

func TestWhatPassesUnsoldIsSetAside(t *testing.T) {
	s := burstyScene(t, 10)
	s.reserve(1)
	gone := s.reserve(3)
	s.reserve(1)
	gone.Cancel()
	s.clock.Advance(450 * time.Millisecond)
	require.Zero(t, s.limiter.Stored(), "there is debt")
	require.False(t, s.limiter.TryAcquire(1))
	s.clock.Advance(50 * time.Millisecond)
	require.InDelta(t, 3, s.limiter.Stored(), 1e-6)
}

func TestCancelAfterSetRate(t *testing.T) {
	s := burstyScene(t, 10)
	s.reserve(1)
	second, third := s.reserve(1), s.reserve(1)
	require.NoError(t, s.limiter.SetRate(100))
	fourth := s.reserve(1)
	require.Equal(t, 300*time.Millisecond, s.at(fourth), "debt keeps its time")
	second.Cancel()
	for i := range 10 { // so what was a tenth of a second holds ten now
		require.Equal(t, time.Duration(100+10*i)*time.Millisecond, s.at(s.reserve(1)))
	}
	require.Equal(t, 310*time.Millisecond, s.nextFree())
	fourth.Cancel()
	third.Cancel()
	require.Equal(t, 200*time.Millisecond, s.nextFree())
}

// The faults that fuzzing found, each by the shortest way to it.

// The newest one rolls the limiter back exactly also where it has taken over a slot
// whose time is now.
func TestTheNewestInAFreedSlotLeavesNoTrace(t *testing.T) {
	s := burstyScene(t, 10)
	s.reserve(1)
	gone := s.reserve(1)
	s.reserve(1)
	gone.Cancel()
	s.clock.Advance(100 * time.Millisecond)
	newest := s.reserve(1)
	require.Equal(t, 100*time.Millisecond, s.at(newest))
	newest.Cancel()
	require.Equal(t, 100*time.Millisecond, s.nextFree(), "the slot is still for sale")
}

// So does it in a limiter whose store was not empty.
func TestTheNewestInAFreedSlotGivesBackWhatWasStored(t *testing.T) {
	s := flatScene(t)
	s.reserve(1)
	gone := s.reserve(8)
	s.reserve(1)
	gone.Cancel()
	require.InDelta(t, 5, s.limiter.Stored(), 1e-9)
	s.reserve(3).Cancel()
	require.InDelta(t, 5, s.limiter.Stored(), 1e-9)
}

// If one of All refuses, the others get theirs back exactly, a freed slot as well.
func TestAllLeavesAFreedSlotAlone(t *testing.T) {
	s := burstyScene(t, 10)
	s.reserve(1)
	gone := s.reserve(1)
	s.reserve(1)
	gone.Cancel()
	s.clock.Advance(100 * time.Millisecond)
	busy, err := pace.NewBursty(1, reserve.WithClock(s.clock))
	require.NoError(t, err)
	require.True(t, busy.TryAcquire(60))
	_, err = reserve.All(s.limiter, busy).ReserveWithin(context.Background(), 1, time.Second)
	require.Error(t, err)
	require.True(t, s.limiter.TryAcquire(1), "nobody has taken it")
}

// A slot that was cancelled, sold to another who cancelled too, is cut off with what
// the first had taken from the store.
func TestASlotFreedTwiceReturnsToTheStore(t *testing.T) {
	s := flatScene(t)
	s.reserve(1)
	first, last := s.reserve(8), s.reserve(1)
	first.Cancel()
	second := s.reserve(8)
	require.Equal(t, 100*time.Millisecond, s.at(second))
	last.Cancel()
	second.Cancel()
	require.Equal(t, 100*time.Millisecond, s.nextFree())
	require.InDelta(t, 14, s.limiter.Stored(), 1e-9)
}

// What an older one gives back to the store counts as having come in for a newer one.
func TestGivenBackIsNotMintedByTheNext(t *testing.T) {
	s := burstyScene(t, 10, pace.WithCapacity(10), reserve.WithStored(10))
	older, newer := s.reserve(5), s.reserve(3)
	older.Cancel()
	s.clock.Advance(300 * time.Millisecond)
	require.True(t, s.limiter.TryAcquire(10))
	newer.Cancel() // had it never been, the 3 that came in since had spilled
	require.Zero(t, s.limiter.Stored())
}

// So do the fresh permits that a newer one gives back late: only what that took from the store
// had been there before.
func TestFreshPermitsGivenBackLateCountAsComeIn(t *testing.T) {
	s := burstyScene(t, 10, pace.WithCapacity(10), reserve.WithStored(10))
	older, newer := s.reserve(3), s.reserve(17) // 7 of them are stored, 10 fresh
	s.clock.Advance(time.Second)
	require.True(t, s.limiter.TryAcquire(1))
	newer.Cancel()
	s.clock.Advance(100 * time.Millisecond)
	require.True(t, s.limiter.TryAcquire(10))
	older.Cancel() // 11 have gone in 0.1 s: that is all that the invariant allows
	require.Zero(t, s.limiter.Stored())
}

// So does the time before a rate change that a rollback makes idle.
func TestIdleTimeBeforeARateChangeIsNotMintedTwice(t *testing.T) {
	s := burstyScene(t, 10, pace.WithCapacity(10), reserve.WithStored(10))
	older, newest := s.reserve(10), s.reserve(20)
	s.clock.Advance(time.Second)
	require.NoError(t, s.limiter.SetRate(20))
	newest.Cancel()
	require.True(t, s.limiter.TryAcquire(10))
	older.Cancel()
	require.Zero(t, s.limiter.Stored())
}

// And at the rate of then, however many changes ago.
func TestIdleTimeBeforeTwoRateChanges(t *testing.T) {
	s := burstyScene(t, 100, pace.WithCapacity(100))
	newest := s.reserve(1000)
	require.NoError(t, s.limiter.SetRate(1))
	s.clock.Advance(5 * time.Second)
	require.NoError(t, s.limiter.SetRate(2))
	newest.Cancel()
	require.InDelta(t, 5, s.limiter.Stored(), 1e-6)
}

// The last one in the queue is not the newest if another took, at the moment its stretch
// ended, what was stored by then: the time of that stretch would have been spilled.
func TestTheLastInTheQueueBehindOneThatTookFromTheStore(t *testing.T) {
	s := burstyScene(t, 10, pace.WithCapacity(10))
	first, last := s.reserve(10), s.reserve(1)
	first.Cancel()
	s.clock.Advance(1100 * time.Millisecond)
	require.True(t, s.limiter.TryAcquire(1))
	last.Cancel()
	require.InDelta(t, 9, s.limiter.Stored(), 1e-6)
}

// Time that passed at one rate earns what it did then, also if it turns out only later
// that it was not sold.
func TestTimeBeforeARateChangeEarnsAtItsRate(t *testing.T) {
	s := burstyScene(t, 1, pace.WithCapacity(100), reserve.PayUpfront())
	long := s.reserve(20)
	s.reserve(1)
	s.clock.Advance(10 * time.Second)
	require.NoError(t, s.limiter.SetRate(100))
	long.Cancel()                                           // half of it has passed
	require.Equal(t, 20*time.Second, s.at(s.reserve(1000))) // and this takes the other half
	s.clock.Advance(11 * time.Second)
	require.InDelta(t, 10, s.limiter.Stored(), 1e-6)
}

// One that was granted at once, cancelled when the queue is over: as if it had never
// been, also if another came and went in between.
func TestTheNewestAfterOneThatLeftNoTrace(t *testing.T) {
	s := flatScene(t, reserve.WithStored(5))
	r := s.reserve(1)
	s.clock.Advance(300 * time.Millisecond)
	s.reserve(1).Cancel()
	r.Cancel()
	require.InDelta(t, 9.5, s.limiter.Stored(), 1e-9)
}

// Paid upfront, what is settled keeps what it paid last: stored permits that nobody
// pays for any more would be a second store.
func TestSettledUpfrontItKeepsNothingStored(t *testing.T) {
	s := burstyScene(t, 10, pace.WithCapacity(10), reserve.WithStored(10), reserve.PayUpfront())
	settled := s.reserve(41)
	require.Equal(t, 3100*time.Millisecond, s.at(settled))
	settled.Settle(10)
	s.clock.Advance(3000 * time.Millisecond)
	other := s.reserve(1)
	s.clock.Advance(100 * time.Millisecond)
	permits := 10 // that may be used at this moment: a full store's, and those of one request
	if other.Delay() == 0 {
		permits++
	}
	if s.limiter.TryAcquire(10) {
		permits += 10
	}
	require.LessOrEqual(t, permits, 20)
}

// flatScene has a store of 15 permits, full, each of which costs what a fresh one does:
// 100 ms. Idleness stores 15/s.
func flatScene(t *testing.T, options ...reserve.Option) *scene {
	return newScene(t, func(opts ...reserve.Option) (*reserve.Limiter, error) {
		return warmup.New(10, time.Second, append(append(opts, warmup.WithColdFactor(1)), options...)...)
	})
}
