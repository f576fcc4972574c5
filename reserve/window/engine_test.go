package window

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
)

// rate returns the rate at which a window of that length, in units of time, has so many permits.
func rate(size int, per int64, unit time.Duration) float64 {
	return reserve.Per(float64(size), time.Duration(per)*unit)
}

// Through the whole engine, on the clock on the wall: the time of each reservation is at
// each nanosecond the model's, and however time is cut, no stretch of per holds more than n of
// what was kept.
func TestExactThroughTheEngine(t *testing.T) {
	first := rand.Uint64()
	defer func() { t.Logf("seed %d", first) }()
	runs, promised := scaled(40), 0
	for run := range runs {
		random := rand.New(rand.NewPCG(first, run))
		size, per := 1+random.IntN(9), int64(1+random.IntN(30))
		clock := clockwork.NewFakeClock()
		policy, err := newPolicy(size, time.Duration(per), reserve.WithClock(clock)) // New wants at least a microsecond
		l := reserve.Must(policy, err).Limiter()
		begin := clock.Now()
		m := model{size: size, per: per, out: -1000}
		var all []*reserve.Reservation
		var open []int
		check := func() {
			times := m.times(1)
			require.Equal(t, times[len(all)], int64(l.NextFree().Sub(begin)))
			for i, at := range times[:len(all)] {
				if m.asked[i].permits > 0 {
					require.Equal(t, time.Duration(at), all[i].At().Sub(begin), "run %d: %d at %d in %+v", run, i, m.now, m)
				}
			}
		}
		for range 150 {
			switch random.IntN(12) {
			case 0, 1, 2, 3:
				r, err := l.Reserve(context.Background(), 1+random.IntN(size))
				require.NoError(t, err)
				m.ask(r.Permits(), false)
				open = append(open, len(all))
				all = append(all, &r)
				m.serve()
			case 4:
				r, err := l.ReserveWithin(context.Background(), 1+random.IntN(size), 0)
				if err == nil {
					m.ask(r.Permits(), false)
					open = append(open, len(all))
					all = append(all, &r)
					m.serve()
				}
			case 5, 6, 7:
				if len(open) == 0 {
					break
				}
				which := random.IntN(len(open))
				i := open[which]
				open = append(open[:which], open[which+1:]...)
				actual, permits := random.IntN(all[i].Permits()+1), all[i].Permits()
				all[i].Settle(actual)
				all[i].Settle(permits) // does nothing
				if actual < permits {
					m.settle(i, actual)
				}
			case 8, 9, 10:
				for range random.IntN(8) {
					clock.Advance(1)
					m.tick()
					check()
				}
			case 11:
				if until := m.now + int64(random.IntN(30)); random.IntN(3) == 0 {
					m.pause(until)
					l.PauseUntil(begin.Add(time.Duration(until)))
				} else {
					m.resume()
					l.Resume()
				}
			}
			check()
		}
		for m.waiting() {
			m.tick()
		}
		promised += len(all)
		for _, last := range m.asked {
			sum := 0
			for _, a := range m.asked {
				if last.at-per < a.at && a.at <= last.at {
					sum += a.permits
				}
			}
			require.LessOrEqual(t, sum, size, "run %d: until %v", run, last.at)
		}
	}
	t.Logf("%d runs, %d promises", runs, promised)
}

// A sleeper is a goroutine that waits for its permits.
type sleeper struct {
	cancel context.CancelFunc
	err    error
	went   time.Duration
	over   bool
}

var errGaveUp = errors.New("gave up")

// Callers that wait, give up, settle and are settled, with pauses and changes of the rate: each goes
// on at the millisecond that the model says.
func TestThoseWhoWaitGoWhenTheModelSays(t *testing.T) {
	first := rand.Uint64()
	defer func() { t.Logf("seed %d", first) }()
	runs, waited, gaveUp := scaled(80), 0, 0
	for run := range runs {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(first, run))
			size, per := 1+random.IntN(5), int64(1+random.IntN(30))
			l := reserve.Must(New(size, time.Duration(per)*time.Millisecond))
			begin := time.Now()
			m := model{size: size, per: per, out: -1000}
			sleepers := map[int]*sleeper{}
			open := map[int]*reserve.Reservation{}
			var order []int
			pick := func() int { return order[random.IntN(len(order))] }
			wait := func() {
				time.Sleep(time.Millisecond)
				synctest.Wait()
				m.tick()
			}
			for range 80 {
				switch random.IntN(12) {
				case 0, 1, 2, 3: // one that waits
					ctx, cancel := context.WithCancelCause(t.Context())
					s := &sleeper{cancel: func() { cancel(errGaveUp) }}
					n := 1 + random.IntN(size)
					go func() {
						_, s.err = l.Acquire(ctx, n)
						s.went, s.over = time.Since(begin), true
					}()
					synctest.Wait()
					order = append(order, len(m.asked))
					sleepers[len(m.asked)] = s
					m.ask(n, false)
					m.serve()
				case 4, 5: // one that settles later
					r, err := l.Reserve(t.Context(), 1+random.IntN(size))
					require.NoError(t, err)
					order = append(order, len(m.asked))
					open[len(m.asked)] = &r
					m.ask(r.Permits(), false)
					m.serve()
				case 6, 7, 8: // one of them gives up, or settles
					if len(order) == 0 {
						break
					}
					i := pick()
					if r := open[i]; r != nil {
						actual, permits := random.IntN(2*size), r.Permits()
						r.Settle(actual)
						delete(open, i)
						if actual < permits {
							m.settle(i, actual)
						} else if actual > permits {
							m.ask(actual-permits, true)
							m.serve()
						}
					} else if s := sleepers[i]; s != nil {
						s.cancel()
						if !m.asked[i].gone {
							m.settle(i, 0)
						}
					}
					synctest.Wait()
				case 9, 10:
					for range random.IntN(6) {
						wait()
					}
				case 11:
					switch random.IntN(6) {
					case 0:
						until := m.now + int64(random.IntN(20))
						l.PauseUntil(begin.Add(time.Duration(until) * time.Millisecond))
						m.pause(until)
					case 1:
						l.Resume()
						m.resume()
					case 2:
						per := int64(1 + random.IntN(30))
						require.NoError(t, l.SetRate(rate(m.size, per, time.Millisecond)))
						m.change(m.size, per, false)
					case 3:
						per := int64(1 + random.IntN(30))
						require.NoError(t, l.Retime(rate(m.size, per, time.Millisecond)))
						m.change(m.size, per, true)
					case 4:
						n, per := 1+random.IntN(5), int64(1+random.IntN(30))
						require.NoError(t, l.SetPolicy(reserve.Must(Policy(n, time.Duration(per)*time.Millisecond))))
						m.change(n, per, false)
						size = n
					}
					synctest.Wait()
				}
				times := m.times(1)
				require.Equal(t, times[len(times)-1], l.NextFree().Sub(begin).Milliseconds(), "run %d: at %d: %+v", run, m.now, m)
			}
			for m.waiting() {
				wait()
			}
			for i, s := range sleepers {
				require.True(t, s.over, "run %d: number %d sleeps on: %+v", run, i, m)
				if s.err == nil {
					require.Equal(t, m.asked[i].at, s.went.Milliseconds(), "run %d: number %d in %+v", run, i, m)
				} else {
					require.ErrorIs(t, s.err, errGaveUp)
					gaveUp++
				}
				s.cancel()
				waited++
			}
		})
	}
	t.Logf("%d runs, %d callers, of whom %d gave up", runs, waited, gaveUp)
}
