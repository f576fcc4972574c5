package shared_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
)

// behind begins a call of a process's that takes a while, and then has callers join the line behind
// it, one after another. It returns what they were told.
func (s *simulation) behind(p *process, callers ...func() error) (told []error) {
	told = make([]error, len(callers))
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := p.Reserve(context.Background(), 1); err != nil {
			s.Error(err)
		}
	})
	for i, ask := range callers {
		time.Sleep(10 * time.Microsecond)
		all.Go(func() { told[i] = ask() })
	}
	all.Wait()
	return told
}

// A caller in the line that has too little time for a call fails by itself: those behind it, with more, are answered.
func TestTheHurriedFailNoLine(t *testing.T) {
	simulate(t, 1, reserve.Must(pace.Bursty(1000)), 100*time.Millisecond, func(s *simulation) {
		p := s.processes[0]
		_, err := p.Stored(s.Context())
		require.NoError(s, err)
		p.trip.Store(int64(20 * time.Millisecond))
		patient := func() error {
			_, err := p.Reserve(context.Background(), 1)
			return err
		}
		told := s.behind(p, func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			_, err := p.Reserve(ctx, 1)
			return err
		}, patient, patient)
		require.ErrorIs(s, told[0], context.DeadlineExceeded)
		require.NoError(s, told[1])
		require.NoError(s, told[2])
	}, shared.WithTimeout(time.Second))
}

// Paid upfront, a request is refused by its own time, not by that of those behind it, nor by that of what
// the process buys beside it.
func TestTheLineRefusesNobodyUpfront(t *testing.T) {
	simulate(t, 1, reserve.Must(pace.TokenBucket(1000, 1)), 100*time.Millisecond, func(s *simulation) {
		p := s.processes[0]
		_, err := p.Stored(s.Context())
		require.NoError(s, err)
		within := func(d time.Duration) func() error {
			return func() error {
				_, err := p.ReserveWithin(context.Background(), 1, d)
				return err
			}
		}
		callers := []func() error{within(10 * time.Millisecond)}
		for range 20 {
			callers = append(callers, within(reserve.Forever))
		}
		for _, err := range s.behind(p, callers...) {
			require.NoError(s, err)
		}
	})
}

// Nor does it wait for the answer after its time.
func TestTheHurriedAreAnsweredUpfront(t *testing.T) {
	simulate(t, 1, reserve.Must(pace.TokenBucket(10_000, 1)), time.Second, func(s *simulation) {
		p := s.processes[0]
		s.acquire(p, 100, 1)
		time.Sleep(500 * time.Millisecond)
		s.stop.Store(true)
		s.callers.Wait()
		time.Sleep(100 * time.Millisecond)
		p.deaf.Store(true)
		asked := 0
		for range 300 {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
			begin := time.Now()
			_, err := p.Reserve(ctx, 200)
			require.LessOrEqual(s, time.Since(begin), 5*time.Millisecond)
			if time.Since(begin) == 5*time.Millisecond {
				require.ErrorIs(s, err, context.DeadlineExceeded)
				asked++
			}
			cancel()
			time.Sleep(20 * time.Millisecond)
		}
		require.Positive(s, asked)
		p.deaf.Store(false)
	}, shared.WithTimeout(50*time.Millisecond))
}

// While the process pauses the limiter its callers go on asking: after that nothing is left in the hand.
func TestAPauseWhileOthersBuy(t *testing.T) {
	simulate(t, 1, reserve.Must(pace.Bursty(1000, pace.WithCapacity(1e6))), 100*time.Millisecond, func(s *simulation) {
		p := s.processes[0]
		for range 4 {
			s.callers.Go(func() {
				for !s.stop.Load() {
					ok, err := p.TryAcquire(context.Background(), 1)
					if err != nil {
						s.Error(err)
					}
					if ok {
						p.note(s, 1)
					}
					time.Sleep(50 * time.Microsecond)
				}
			})
		}
		for range 20 {
			time.Sleep(200 * time.Millisecond)
			require.NoError(s, p.PauseUntil(s.Context(), time.Now().Add(100*time.Millisecond)))
			from := time.Since(s.begin)
			time.Sleep(50 * time.Millisecond)
			require.Zero(s, within(s.all(), from+time.Microsecond, from+50*time.Millisecond))
		}
	})
}
