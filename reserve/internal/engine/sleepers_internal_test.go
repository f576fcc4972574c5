package engine

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/smooth"
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
	require.LessOrEqual(t, len(s.free), keptSleepers)
}

// A caller is woken because its time is past its deadline, and sleeps on because the time came back meanwhile. It goes
// at that time.
func TestSleeperThatSleepsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var atRate func(float64) *smooth.Curve
		atRate = func(rate float64) *smooth.Curve {
			return &smooth.Curve{Rate: rate, Interval: smooth.Interval(rate), AtRate: atRate}
		}
		l := NewPolicy(Terms{Clock: Clock{}.Begun(), MaxWait: forever, Curve: atRate(1)}, Variant{}, nil).Limiter()
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
