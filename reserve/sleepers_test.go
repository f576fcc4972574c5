package reserve_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/warmup"
)

// A crowd is goroutines that sleep by a limiter while all that can move their times is done to it, and a twin of that
// limiter without sleepers: its reservations say when each sleeper has to wake.
type crowd struct {
	*testing.T
	limiter, twin *reserve.Limiter
	group         sync.WaitGroup
	begin         time.Time
	all           []*sleeper
	first         int // all before it were granted
}

type sleeper struct {
	cancel context.CancelFunc
	own    reserve.Reservation // the sleeping one
	r      reserve.Reservation // the twin's
	at     time.Duration       // when it goes, by what was known last
	gone   bool                // at that time, or given up
	gaveUp bool

	woke time.Duration // guarded by the bubble: read when all are blocked
	err  error
	over bool
}

func (c *crowd) now() time.Duration { return time.Since(c.begin) }

// look records, before anything is done, which requests were granted since the last time, and after it what the new
// times are.
func (c *crowd) look() {
	for c.first < len(c.all) && c.all[c.first].gone {
		c.first++
	}
	for _, e := range c.all[c.first:] {
		if !e.gone {
			if e.at <= c.now() {
				e.gone = true
			} else {
				e.at = max(c.now(), e.r.At().Sub(c.begin))
				e.gone = e.at <= c.now()
			}
		}
	}
}

func (c *crowd) reserve(n int) {
	e := &sleeper{}
	var err error
	e.r, err = c.twin.Reserve(ctx, n)
	require.NoError(c, err)
	e.at = max(c.now(), e.r.At().Sub(c.begin))
	e.own, err = c.limiter.Reserve(ctx, n)
	require.NoError(c, err)
	require.Equal(c, e.r.Delay(), e.own.Delay())
	var sleeping context.Context
	sleeping, e.cancel = context.WithCancel(ctx)
	c.all = append(c.all, e)
	c.group.Go(func() {
		e.err = e.own.Wait(sleeping)
		e.woke, e.over = c.now(), true
	})
	synctest.Wait()
}

// waiting returns a waiting request, or nil.
func (c *crowd) waiting(random *rand.Rand) *sleeper {
	if c.first == len(c.all) {
		return nil
	}
	if e := c.all[c.first+random.IntN(len(c.all)-c.first)]; !e.gone {
		return e
	}
	return nil
}

func (c *crowd) step(random *rand.Rand, rate float64, policies []*reserve.Policy) {
	both := func(do func(l *reserve.Limiter)) {
		do(c.twin)
		do(c.limiter)
	}
	switch op := random.IntN(40); {
	case op < 16:
		c.reserve(1 + random.IntN(4))
	case op < 20: // gives up
		if e := c.waiting(random); e != nil {
			e.r.Cancel()
			e.gone, e.gaveUp = true, true
			e.cancel()
			synctest.Wait()
			require.True(c, e.over)
			require.ErrorIs(c, e.err, context.Canceled)
		}
	case op < 28: // anyone settles
		if len(c.all) > 0 {
			e := c.all[len(c.all)-1-random.IntN(min(len(c.all), 100))]
			actual := random.IntN(6)
			e.r.Settle(actual)
			e.own.Settle(actual)
			synctest.Wait()
			if !e.gone && e.r.Wait(done()) == reserve.ErrCancelled {
				e.gone, e.gaveUp = true, true
				require.ErrorIs(c, e.err, reserve.ErrCancelled)
			}
		}
	case op < 30:
		until := time.Now().Add(time.Duration(random.IntN(int(50 / rate * 1e9))))
		both(func(l *reserve.Limiter) { l.PauseUntil(until) })
	case op < 32:
		both((*reserve.Limiter).Resume)
	case op < 33:
		r := rate * []float64{0.5, 1, 2}[random.IntN(3)]
		both(func(l *reserve.Limiter) { require.NoError(c, l.Retime(r)) })
	case op < 34:
		r := rate * []float64{0.5, 1, 2}[random.IntN(3)]
		both(func(l *reserve.Limiter) { require.NoError(c, l.SetRate(r)) })
	case op < 35:
		p := policies[random.IntN(len(policies))]
		both(func(l *reserve.Limiter) { require.NoError(c, l.SetPolicy(p)) })
	default: // refused without the lock, or not
		n := 1 + random.IntN(3)
		for range 1 + random.IntN(3) {
			_, err := c.twin.ReserveWithin(ctx, n, 0)
			require.Equal(c, err == nil, c.limiter.TryAcquire(n), "TryAcquire(%d), the twin says %v", n, err)
		}
	}
	synctest.Wait()
	require.Equal(c, c.twin.NextFree(), c.limiter.NextFree())
}

// done returns a context that has ended.
func done() context.Context {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	return ended
}

func TestSleepersWakeWhenTheyWereTold(t *testing.T) {
	const rate = 1000.0
	for name, policy := range map[string]func(rate float64) *reserve.Policy{
		"nothing saved up": func(rate float64) *reserve.Policy { return reserve.Must(pace.Bursty(rate, pace.WithBurst(0))) },
		"bursty":           func(rate float64) *reserve.Policy { return reserve.Must(pace.Bursty(rate, pace.WithCapacity(20))) },
		"token bucket":     func(rate float64) *reserve.Policy { return reserve.Must(pace.TokenBucket(rate, 5)) },
		"warming up":       func(rate float64) *reserve.Policy { return reserve.Must(warmup.Policy(rate, 20*ms)) },
		"window":           func(rate float64) *reserve.Policy { return reserve.Must(window.Policy(int(rate/100), 10*ms)) },
	} {
		for seed := range uint64(1) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					p := policy(rate)
					policies := []*reserve.Policy{policy(rate / 2), p, policy(2 * rate)}
					c := &crowd{T: t, limiter: p.Limiter(), twin: p.Limiter(), begin: time.Now()}
					random := rand.New(rand.NewPCG(seed, 11))
					for range 300 {
						c.reserve(1)
					}
					for range 300 {
						time.Sleep(time.Duration(random.IntN(int(1e9 / rate))))
						c.look()
						c.step(random, rate, policies)
						c.look()
					}
					for c.look(); c.first < len(c.all); c.look() {
						time.Sleep(max(1, c.all[c.first].at-c.now()))
					}
					synctest.Wait()
					for i, e := range c.all {
						require.True(t, e.over, "sleeper %d sleeps on; it was to go at %v, now is %v", i, e.at, c.now())
						if e.gaveUp {
							continue
						}
						require.NoError(t, e.err)
						require.Equal(t, e.at, e.woke, "sleeper %d", i)
					}
					c.group.Wait()
				})
			})
		}
	}
}
