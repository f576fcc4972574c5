package shared_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
)

// Of a promise that waits and holds stored permits, what it held scales with the store.
func TestWhatWasHeldScales(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		g := newGroup(t, c, "held", 1, reserve.Must(pace.Bursty(10, reserve.PayUpfront())))
		g.sell(6)
		holds, last := g.sell(10), g.sell(5) // 4 out of the store, and 6 fresh ones
		require.InDelta(t, 600e6, holds.Wait, 2)
		require.InDelta(t, 1100e6, last.Wait, 2)
		holds.Promise().Cancel()
		require.NoError(t, g.processes[0].SetRate(t.Context(), 40))
		last.Promise().Cancel() // nobody waits any more
		require.InDelta(t, 0, g.debt(), 2)
		require.InDelta(t, 16, g.stored(), 1e-9)
	})
}

// A single permit that came back can be had at once.
func TestOnePermitAtOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		g := newGroup(t, c, "one", 2, reserve.Must(pace.Bursty(10)))
		went := g.sell(1)
		g.sell(9)
		g.sell(1)
		require.InDelta(t, 100e6, g.sell(1).Wait, 2)
		went.Promise().Cancel()
		require.Zero(t, g.sell(1).Wait)
		require.InDelta(t, 200e6, g.sell(1).Wait, 2)
	})
}

// Paid upfront, a bucket held more than its capacity for a larger request. When that was granted, and settles for less,
// as much comes back as fits beside what it used.
func TestALargeRequestThatIsSettled(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		for used, back := range []float64{2, 1, 0, 0} {
			name := fmt.Sprint("large, ", used)
			g := newGroup(t, c, name, 1, reserve.Must(pace.Bursty(1, pace.WithCapacity(2), reserve.PayUpfront())))
			large := g.sell(4)
			require.InDelta(t, 2e9, large.Wait, 2)
			g.sleep(2 * time.Second)
			large.Promise().Settle(used)
			require.InDelta(t, back, g.stored(), 1e-9)
		}
	})
}

// Where there was no store nothing is stored when there is one, also when what is owed has been
// paid.
func TestStoreFromNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		g := newGroup(t, c, "nothing", 1, reserve.Must(pace.Bursty(10, pace.WithBurst(0))))
		g.sell(2)
		g.processes[0] = newShared(t, c, "nothing", reserve.Must(pace.Bursty(10)), shared.FakeTime(g.micros))
		require.NoError(t, g.processes[0].SetRate(t.Context(), 10))
		g.sleep(200 * time.Millisecond)
		require.InDelta(t, 0, g.stored(), 1e-9)
		g.sleep(300 * time.Millisecond)
		require.InDelta(t, 3, g.stored(), 1e-9)

		// Nor is anything promised for the end of a pause.
		g = newGroup(t, c, "nothing, paused", 1, reserve.Must(pace.Bursty(10, pace.WithBurst(0))))
		require.NoError(t, g.processes[0].Pause(60e9))
		g.processes[0] = newShared(t, c, "nothing, paused", reserve.Must(pace.Bursty(10)), shared.FakeTime(g.micros))
		require.InDelta(t, 60e9, g.debt(), 2)
		require.NoError(t, g.processes[0].Resume(t.Context()))
		require.InDelta(t, 0, g.debt(), 2)
	})
}

// Resume ends a pause unless stored permits are promised for its end: not those of an earlier
// pause, nor of a promise that was given back; but another's is not theirs.
func TestPromisedForTheEndOfAPause(t *testing.T) {
	eachScript(t, func(t *testing.T, c place) {
		resume := func(g *group) {
			require.NoError(t, g.processes[0].Resume(t.Context()))
		}
		g := newGroup(t, c, "held for a pause", 2, reserve.Must(pace.Bursty(10, pace.WithCapacity(3))))
		require.NoError(t, g.processes[0].Pause(1e9))
		g.sell(2)
		g.sell(9)
		g.sleep(time.Second) // its end, and 8 permits are owed
		require.NoError(t, g.processes[0].Pause(60e9))
		require.InDelta(t, 60e9, g.debt(), 2)
		resume(g)
		require.InDelta(t, 800e6, g.debt(), 2)

		g.sleep(time.Minute)
		require.NoError(t, g.processes[0].Pause(60e9))
		fresh := g.sell(5) // 3 out of the store, and 2 fresh ones
		require.InDelta(t, 60e9, fresh.Wait, 2)
		fresh.Promise().Cancel()
		resume(g)
		require.InDelta(t, 0, g.debt(), 2)
		require.InDelta(t, 3, g.stored(), 1e-9)

		g = newGroup(t, c, "held for a pause, upfront", 2, reserve.Must(pace.Bursty(10, pace.WithCapacity(3), reserve.PayUpfront())))
		require.NoError(t, g.processes[0].Pause(60e9))
		require.InDelta(t, 60e9, g.sell(1).Wait, 2)
		fresh = g.sell(5)
		fresh.Promise().Cancel()
		resume(g)
		require.InDelta(t, 60e9, g.debt(), 2)
	})
}

// A pause for centuries is one, and a record of more permits than there is room for is one of very many.
func TestPausedForCenturies(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		for i, rate := range []float64{math.Inf(1), 1e300, 100} {
			l := newShared(t, c, fmt.Sprint("centuries ", i), reserve.Must(pace.Bursty(rate)))
			require.NoError(t, l.PauseUntil(t.Context(), time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC)))
			ok, err := l.TryAcquire(t.Context(), 1)
			require.NoError(t, err)
			require.False(t, ok)
			now, err := l.Snapshot(t.Context())
			require.NoError(t, err)
			require.Greater(t, now.Wait, 36*365*24*time.Hour)
			require.NoError(t, l.Resume(t.Context()))
			r, err := l.Reserve(t.Context(), math.MaxInt)
			require.NoError(t, err)
			require.Zero(t, r.Delay())
			if !math.IsInf(rate, 1) {
				ok, err = l.TryAcquire(t.Context(), 1)
				require.NoError(t, err)
				require.Equal(t, rate > 1e18, ok)
			}
			r.Cancel()
			ok, err = l.TryAcquire(t.Context(), 1)
			require.NoError(t, err)
			require.True(t, ok)
		}
	})
}
