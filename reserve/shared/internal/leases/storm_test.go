package leases_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/warmup"
)

// Callers of three processes do whatever a limiter can do, of all sizes, while all kinds of faults come
// and go: nobody hangs, every error is one that the documentation names, and at the end the limiter
// works, a process that is idle asks nothing, and it holds nothing.
func TestLeasesInAStorm(t *testing.T) {
	policies := map[string]func(rate float64) (*reserve.Policy, error){
		"bursty":   func(rate float64) (*reserve.Policy, error) { return pace.Bursty(rate) },
		"no store": func(rate float64) (*reserve.Policy, error) { return pace.Bursty(rate, pace.WithBurst(0)) },
		"upfront":  func(rate float64) (*reserve.Policy, error) { return pace.TokenBucket(rate, 50) },
		"warm-up":  func(rate float64) (*reserve.Policy, error) { return warmup.Policy(rate, 100*time.Millisecond) },
		"impatient": func(rate float64) (*reserve.Policy, error) {
			return pace.Bursty(rate, reserve.WithMaxWait(20*time.Millisecond))
		},
	}
	modes := []shared.Option{shared.FailClosed(), shared.FailOpen(), shared.Local(0.3)}
	for i, name := range slices.Sorted(maps.Keys(policies)) {
		policy := policies[name]
		for seed, rate := range []float64{1, 500, 20_000, 1e6} {
			if seed != i%4 && !long() {
				continue
			}
			t.Run(fmt.Sprint(name, " ", rate), func(t *testing.T) {
				simulate(t, 3, reserve.Must(policy(rate)), 50*time.Millisecond, func(s *simulation) {
					for i, p := range s.processes {
						for g := range 6 {
							s.callers.Go(func() { s.rage(p, rand.New(rand.NewPCG(uint64(seed*100+i), uint64(g))), rate) })
						}
					}
					random := rand.New(rand.NewPCG(uint64(seed), 7))
					w := s.processes[0].wire
					do := func(args ...any) {
						_, err := w.Client.Do(context.Background(), args...)
						require.NoError(s, err)
					}
					for range 12 {
						time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
						w := s.processes[random.IntN(3)].wire
						switch random.IntN(6) {
						case 0:
							w.down.Store(true)
						case 1:
							w.deaf.Store(true)
						case 2:
							w.moody.Store(true)
						case 3:
							do("FLUSHALL")
						case 4:
							do("DEL", "pace:{leased}")
							do("LPUSH", "pace:{leased}", 1)
						case 5:
							w.trip.Store(int64(30 * time.Millisecond))
						}
						time.Sleep(time.Duration(random.IntN(150)) * time.Millisecond)
						for _, p := range s.processes {
							p.down.Store(false)
							p.deaf.Store(false)
							p.moody.Store(false)
							p.trip.Store(0)
						}
						do("DEL", "pace:{leased}")
					}
					s.stop.Store(true)
					s.callers.Wait()
					do("FLUSHALL")
					time.Sleep(5 * time.Second)
					var calls [3]int64
					for i, p := range s.processes {
						_, err := p.Acquire(s.Context(), 1)
						require.NoError(s, err)
						time.Sleep(2 * time.Second)
						calls[i] = p.calls.Load()
					}
					time.Sleep(time.Hour)
					for i, p := range s.processes {
						require.Equal(s, calls[i], p.calls.Load())
						require.Zero(s, p.Stats().Leased)
					}
				}, modes[seed%3], shared.WithTimeout(50*time.Millisecond))
			})
		}
	}
}

// rage does whatever a limiter can do.
func (s *simulation) rage(p *process, random *rand.Rand, rate float64) {
	const timeout = 50 * time.Millisecond
	for !s.stop.Load() {
		ctx, cancel := context.Background(), context.CancelFunc(func() {})
		limit := 100 * time.Millisecond
		switch random.IntN(3) {
		case 0:
			limit = time.Duration(random.Int64N(int64(limit)))
			ctx, cancel = context.WithTimeout(ctx, limit)
		case 1:
			ctx, cancel = context.WithCancel(ctx)
			time.AfterFunc(time.Duration(random.Int64N(int64(limit))), cancel)
		}
		n := 1 + random.IntN(3)
		if random.IntN(10) == 0 {
			n = 1 + random.IntN(int(rate/5)+1)
		}
		begin := time.Now()
		var err error
		switch random.IntN(12) {
		case 0, 1, 2:
			_, err = p.TryAcquire(ctx, n)
		case 3, 4, 5, 6, 7, 8:
			var r reserve.Reservation
			if r, err = p.ReserveWithin(ctx, n, limit); err == nil {
				require.LessOrEqual(s, time.Since(begin), 4*timeout)
				if random.IntN(2) == 0 {
					err = r.Wait(ctx)
				}
				time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond * time.Duration(random.IntN(2)))
				if random.IntN(2) == 0 {
					r.Settle(random.IntN(2 * n))
				}
				begin = time.Now()
			}
		case 9:
			_, err = p.Stored(ctx)
		case 10:
			_, err = p.NextFree(ctx)
		case 11:
			switch random.IntN(3) {
			case 0:
				err = p.PauseUntil(ctx, time.Now().Add(30*time.Millisecond))
			case 1:
				err = p.Resume(ctx)
			case 2:
				err = p.SetRate(ctx, rate*(0.5+random.Float64()))
			}
		}
		cancel()
		var wait *reserve.WaitError
		var unavailable *shared.UnavailableError
		var config *shared.ConfigError
		switch {
		case err == nil, errors.As(err, &wait), errors.As(err, &unavailable), errors.As(err, &config),
			errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, reserve.ErrCancelled):
		default:
			s.Error(err)
		}
		if d := time.Since(begin); d > 8*timeout {
			s.Errorf("a call took %v: %v", d, err)
		}
		time.Sleep(time.Duration(random.IntN(5000)) * time.Microsecond)
	}
}
