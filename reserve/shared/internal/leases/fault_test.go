package leases_test

import (
	"context"
	"errors"
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
		for range 5 {
			time.Sleep(200 * time.Millisecond)
			require.NoError(s, p.PauseUntil(s.Context(), time.Now().Add(100*time.Millisecond)))
			from := time.Since(s.begin)
			time.Sleep(50 * time.Millisecond)
			require.Zero(s, within(s.all(), from+time.Microsecond, from+50*time.Millisecond))
		}
	})
}

// A rate that is set again and again, as by an adaptive limit, costs nothing of it.
func TestARateThatIsSetOften(t *testing.T) {
	const rate = 1000
	simulate(t, 1, reserve.Must(pace.Bursty(rate, pace.WithBurst(0))), 200*time.Millisecond, func(s *simulation) {
		p := s.processes[0]
		s.acquire(p, 40, 1)
		time.Sleep(time.Second)
		for i := range 30 {
			time.Sleep(100 * time.Millisecond)
			require.NoError(s, p.SetRate(s.Context(), rate+float64(i%2)))
		}
		n := within(s.all(), time.Second, 4*time.Second)
		s.Logf("%d granted", n)
		require.InEpsilon(s, 3*rate, n, 0.03)
	})
}

// What was promised when the process gave back its leases, and is cancelled then, goes back as well.
func TestWhatComesBackAfterAPause(t *testing.T) {
	simulate(t, 2, reserve.Must(pace.Bursty(50, pace.WithCapacity(1e5))), time.Second, func(s *simulation) {
		p, other := s.processes[0], s.processes[1]
		begin := time.Now()
		var all [200]reserve.Reservation
		for i := range all {
			var err error
			all[i], err = p.Reserve(s.Context(), 1)
			require.NoError(s, err)
			time.Sleep(2 * time.Millisecond)
		}
		require.NoError(s, p.Resume(s.Context()))
		for i := 180; i < len(all); i++ {
			all[i].Cancel()
		}
		time.Sleep(2500 * time.Millisecond)
		stored, err := other.Stored(s.Context())
		require.NoError(s, err)
		require.InDelta(s, 180-50*time.Since(begin).Seconds(), 1e5-stored, 2)
		here, err := p.Stored(s.Context())
		require.NoError(s, err)
		require.InDelta(s, stored, here, 1, "it holds nothing")
	})
}

// Answers are lost, all of them for a while or every second one: no caller waits for longer than two
// timeouts, and what Redis was charged for nothing is a store, and a lease a call, at most.
func TestLeasesWhoseAnswersAreLost(t *testing.T) {
	const rate, capacity, horizon = 2000.0, 400.0, 100 * time.Millisecond
	for name, mode := range map[string]shared.Option{"closed": shared.FailClosed(), "open": shared.FailOpen(), "local": shared.Local(0.5)} {
		for _, moody := range []bool{false, true} {
			simulate(t, 1, reserve.Must(pace.Bursty(rate, pace.WithCapacity(capacity))), horizon, func(s *simulation) {
				p := s.processes[0]
				var mu sync.Mutex
				var most time.Duration
				failed := 0
				for range 10 {
					s.callers.Go(func() {
						for !s.stop.Load() {
							begin := time.Now()
							ok, err := p.TryAcquire(context.Background(), 1)
							var unavailable *shared.UnavailableError
							mu.Lock()
							most = max(most, time.Since(begin))
							if errors.As(err, &unavailable) {
								failed++
							} else if err != nil {
								s.Error(err)
							}
							mu.Unlock()
							if ok {
								p.note(s, 1)
							}
							time.Sleep(10 * time.Millisecond)
						}
					})
				}
				time.Sleep(time.Second)
				p.deaf.Store(!moody)
				p.moody.Store(moody)
				time.Sleep(2 * time.Second)
				p.deaf.Store(false)
				p.moody.Store(false)
				back := time.Since(s.begin)
				time.Sleep(3 * time.Second)
				s.stop.Store(true)
				s.callers.Wait()
				times := s.all()
				recovered := within(times, back+500*time.Millisecond, back+3*time.Second)
				s.Logf("%s, moody %v: %d granted, %d failed, %v at most; afterwards %d in 2.5 s",
					name, moody, len(times), failed, most, recovered)
				require.LessOrEqual(s, most, 110*time.Millisecond)
				require.Greater(s, recovered, 2200, "1000/s are asked for")
				require.LessOrEqual(s, excess(times, rate, capacity), rate*horizon.Seconds())
				if name != "closed" {
					require.Zero(s, failed)
				}
			}, mode, shared.WithTimeout(50*time.Millisecond))
		}
	}
}

// Another process sets the rate, again and again, while this one holds leases at its own: never more than
// the faster of them, and this one gets on.
func TestARateSetElsewhere(t *testing.T) {
	const rate = 5000
	simulate(t, 2, reserve.Must(pace.Bursty(rate, pace.WithCapacity(100))), 100*time.Millisecond, func(s *simulation) {
		for _, p := range s.processes {
			s.acquire(p, 10, 1)
		}
		time.Sleep(500 * time.Millisecond)
		for i := range 40 {
			require.NoError(s, s.processes[1].SetRate(s.Context(), []float64{rate, 50, rate / 2, 1000}[i%4]))
			time.Sleep(50 * time.Millisecond)
		}
		times := s.all()
		s.Logf("%d granted, %.0f over", len(times), excess(times, rate, 101))
		require.LessOrEqual(s, excess(times, rate, 101), rate*0.1)
		require.NoError(s, s.processes[1].SetRate(s.Context(), rate))
		from := time.Since(s.begin) + 500*time.Millisecond
		time.Sleep(1500 * time.Millisecond)
		require.InEpsilon(s, rate, within(s.all(), from, from+time.Second), 0.02)
	})
}
