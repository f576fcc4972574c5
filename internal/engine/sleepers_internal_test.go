package engine

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/smooth"
)

// Callers that leave from the middle of a queue take no memory for long, and the others keep their order.
func TestSleepersThatLeaveTheMiddle(t *testing.T) {
	var s sleepers
	var all []*sleeper
	for number := range uint64(10_000) {
		all = append(all, s.enter(number, never))
	}
	for i, e := range all {
		if i%100 != 0 {
			s.leave(e)
		}
		require.LessOrEqual(t, s.waiting(), 10_000-i+i/100)
	}
	require.LessOrEqual(t, s.list.Len(), 2*100+33, "at most as many have left as are there, and 33")
	var numbers []uint64
	for _, e := range s.list.All() {
		if !e.left {
			numbers = append(numbers, e.number)
		}
	}
	require.Len(t, numbers, 100)
	require.IsIncreasing(t, numbers)
}

// A caller is woken because its time is past its deadline, and sleeps on because the time came back meanwhile. It goes
// at that time.
func TestSleeperThatSleepsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var atRate func(float64) *smooth.Curve
		atRate = func(rate float64) *smooth.Curve {
			return &smooth.Curve{Rate: rate, Interval: smooth.Interval(rate), AtRate: atRate}
		}
		l := NewPolicy(Terms{Clock: Clock{}.Begun(), MaxWait: forever, Curve: atRate(1)}).Limiter()
		require.True(t, l.TryAcquire(1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin, went := time.Now(), make(chan time.Duration, 4)
		for range cap(went) {
			go func() {
				_, err := l.Acquire(ctx, 1)
				require.NoError(t, err)
				went <- time.Since(begin)
			}()
			synctest.Wait()
		}
		now := l.lock()
		for _, rate := range []float64{1. / 18, 1} { // the fourth's time is 72 s, and again 4 s
			l.ledger.Retime(now, rate)
			l.changed(now, true)
		}
		l.mu.Unlock()
		for i := range cap(went) {
			require.Equal(t, time.Duration(i+1)*time.Second, <-went)
		}
	})
}

// The second of the callers that wait has a timer, also where others have left before it.
func TestSecondSleeper(t *testing.T) {
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 1))
		var s sleepers
		var all []*sleeper
		for range 30 {
			if i := random.IntN(2 * (len(all) + 1)); i < len(all) {
				s.leave(all[i])
				all = slices.Delete(all, i, i+1)
			}
			number := random.Uint64N(100)
			before := 0
			for _, other := range all {
				if other.number <= number {
					before++
				}
			}
			e := s.enter(number, never)
			require.Equal(t, before < withTimer, e.timed, seed)
			all = append(all, e)
		}
	}
}

// A timetable is a ledger that knows when some requests are ready.
type timetable struct {
	Ledger
	times map[uint64]int64
	asked int
}

func (l *timetable) Ready(_ int64, number uint64) (ready int64, known bool) {
	l.asked++
	ready, known = l.times[number]
	return ready, known
}

// The caller that check wakes is the first whose time is past its deadline, whoever has left, and it asks few where
// none is.
func TestCheck(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 2))
		ledger := &timetable{times: map[uint64]int64{}}
		l := &Limiter{ledger: ledger, cold: new(cold)}
		s := l.sleepersOf()
		var all []*sleeper
		slack, unknown, leave := 1+random.Int64N(3000), random.IntN(10), random.IntN(5)
		for at := int64(0); len(all) < 2*block+random.IntN(2*block); at += random.Int64N(3) {
			number := uint64(2 * (len(all)/(1+random.IntN(2)) + 1)) // some wait for the same reservation
			if n := len(all); n > 0 {
				number = max(number, all[n-1].number)
			}
			if _, had := ledger.times[number]; !had && random.IntN(10) >= unknown {
				ledger.times[number] = at
			}
			e := s.enter(number, never)
			if random.IntN(3) > 0 {
				e.deadline = at + slack - random.Int64N(100)
			}
			all = append(all, e)
		}
		for _, e := range all {
			if random.IntN(5) < leave {
				s.leave(e)
			}
		}
		for after := uint64(0); ; after = s.late {
			var want uint64
			for _, e := range all {
				at, known := ledger.times[e.number]
				if e.number > after && !e.left && known && at > e.deadline {
					want = e.number
					break
				}
			}
			ledger.asked = 0
			s.check(l, 0, after)
			require.Equal(t, want, s.late, seed)
			if want > 0 {
				continue
			}
			if after == 0 && slack > 700 && unknown == 0 {
				require.LessOrEqual(t, ledger.asked, 2+len(all)/block)
			}
			break
		}
	}
}
