package main

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

var short = simulation{warmUp: 20 * time.Second, counted: time.Minute, seed: 1}

// Where nothing has to be given back, all limiters use the rate, and none exceeds it.
func TestExactEstimatesUseTheRate(t *testing.T) {
	exact := load{0, 4, 100, span[int]{100, 100}, seconds(0, 0.1)}
	for name, make := range map[string]func(load) limiter{"pace": newPace, "x/time/rate": newXTime} {
		o := short.run(exact, make(exact))
		require.InDelta(t, 1000, o.used, 2, name)
		require.InDelta(t, 0, o.worst, 1e-3, name)
	}
}

// x/time/rate lets waiting callers go, whatever other calls still hold.
func TestXTimeExceedsItsStore(t *testing.T) {
	l := load{time.Second, 64, 1000, span[int]{400, 400}, seconds(8, 8)}
	o := short.run(l, newXTime(l))
	require.Greater(t, l.exceeds(o), 5000.)
}

// The simulation is the same as goroutines that wait and sleep.
func TestSimulationAgreesWithGoroutines(t *testing.T) {
	for _, l := range []load{loads[1], loads[2], loads[5]} {
		simulated := short.run(l, newPace(l))
		synctest.Test(t, func(t *testing.T) {
			limiter, err := pace.NewBursty(permitsPerSecond, pace.WithBurst(l.saved))
			require.NoError(t, err)
			var used atomic.Int64
			var all sync.WaitGroup
			begin := time.Now()
			for i := range l.callers {
				all.Go(func() {
					random := rand.New(rand.NewPCG(1, uint64(i)))
					for {
						if gone, actual := goOnce(limiter, l, random); gone.Sub(begin) > short.warmUp+short.counted {
							return
						} else if gone.Sub(begin) > short.warmUp {
							used.Add(int64(actual))
						}
					}
				})
			}
			all.Wait()
			require.InEpsilon(t, simulated.used, float64(used.Load())/short.counted.Seconds(), 0.04)
		})
	}
}

func goOnce(limiter *reserve.Limiter, l load, random *rand.Rand) (gone time.Time, actual int) {
	r := reserve.Must(limiter.Reserve(context.Background(), l.reserves))
	reserve.Must(0, r.Wait(context.Background()))
	gone, actual = time.Now(), l.actual.draw(random)
	time.Sleep(l.takes.draw(random))
	r.Settle(actual)
	return gone, actual
}

func TestBeyond(t *testing.T) {
	at := func(seconds float64) time.Duration { return time.Duration(seconds * 1e9) }
	require.Zero(t, beyond([]call{{at(1), 5000}})) // its own does not count
	require.Zero(t, beyond([]call{{at(1), 500}, {at(1.5), 1}}))
	require.InDelta(t, 100, beyond([]call{{at(1), 500}, {at(1.4), 1}}), 1e-6)
	require.InDelta(t, 1100, beyond([]call{{at(0), 100}, {at(1), 1000}, {at(1.4), 500}, {at(1.4), 7}}), 1e-6)
}

func TestTable(t *testing.T) {
	var table bytes.Buffer
	simulation{counted: time.Second, seed: 1}.table(&table)
	require.Contains(t, table.String(), "| 1 s      |      64 |    1000 | 300 to 500 | after 4 to 12 s    |")
}
