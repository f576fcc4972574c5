package shared_test

import (
	"fmt"
	"math"
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

// A group is some processes with one limiter, at a time of the test's.
type group struct {
	t         *testing.T
	micros    *int64
	processes []*shared.Limiter
}

func newGroup(t *testing.T, c place, name string, n int, p *reserve.Policy) *group {
	micros := int64(1_790_000_000_000_000)
	g := &group{t: t, micros: &micros}
	for range n {
		g.processes = append(g.processes, newShared(t, c, name, p, shared.FakeTime(&micros)))
	}
	return g
}

// sell sells permits to one process after the other.
func (g *group) sell(n int) shared.Sale {
	g.processes = append(g.processes[1:], g.processes[0])
	s, err := g.processes[0].Sell(n, math.MaxInt64)
	require.NoError(g.t, err)
	require.True(g.t, s.Granted)
	return s
}

func (g *group) stored() float64 {
	stored, err := g.processes[0].Stored(g.t.Context())
	require.NoError(g.t, err)
	return stored
}

func (g *group) debt() float64 {
	_, debt, _, err := g.processes[0].Look()
	require.NoError(g.t, err)
	return debt
}

func (g *group) sleep(d time.Duration) { *g.micros += d.Microseconds() }

// Callers of three processes queue and all give up, in any order: the next one waits for one
// permit.
func TestAllGiveUp(t *testing.T) {
	orders := map[string]func(n int) []int{
		"oldest first": func(n int) (order []int) {
			for i := range n {
				order = append(order, i)
			}
			return order
		},
		"newest first": func(n int) (order []int) {
			for i := range n {
				order = append(order, n-1-i)
			}
			return order
		},
		"random": rand.New(rand.NewPCG(1, 1)).Perm,
	}
	policies := map[string]*reserve.Policy{
		"nothing saved up": reserve.Must(pace.Bursty(10, pace.WithBurst(0))),
		"saved up":         reserve.Must(pace.Bursty(10, pace.WithCapacity(5))),
		"upfront":          reserve.Must(pace.Bursty(10, pace.WithCapacity(5), reserve.PayUpfront())),
		"warm-up":          reserve.Must(warmup.Policy(10, time.Second)),
	}
	eachStore(t, func(t *testing.T, c place) {
		for what, order := range orders {
			if c.brief() && what != "random" {
				continue
			}
			for how, p := range policies {
				for _, callers := range []int{100, 1000} {
					if c.brief() && callers > 100 {
						continue
					}
					for _, largest := range []int{1, 7} {
						name := fmt.Sprint(what, ", ", how, ", ", callers, " callers of up to ", largest)
						giveUp(t, newGroup(t, c, name, 3, p), name, order(callers), largest)
					}
				}
			}
		}
	})
}

func giveUp(t *testing.T, g *group, name string, order []int, largest int) {
	for g.stored() > 0 || g.debt() < 1 {
		g.sell(1)
	}
	before := g.debt()
	random := rand.New(rand.NewPCG(1, 2))
	sales := make([]shared.Sale, len(order))
	for i := range sales {
		sales[i] = g.sell(1 + random.IntN(largest))
	}
	for n, i := range order {
		if n == len(order)/2 {
			g.sleep(10 * time.Millisecond)
		}
		sales[i].Promise().Cancel()
	}
	require.InDelta(t, before-10e6, g.debt(), 3, name)
}

// The list of what came back is bounded, and what it forgets is only lost.
func TestGivingBackIsBounded(t *testing.T) {
	eachScript(t, func(t *testing.T, c place) {
		g := newGroup(t, c, "bounded", 2, reserve.Must(pace.Bursty(1000, pace.WithCapacity(500))))
		var sales []shared.Sale
		for range 3000 {
			sales = append(sales, g.sell(1))
			g.sleep(time.Microsecond)
		}
		for i, s := range sales {
			if i%2 == 0 {
				s.Promise().Cancel()
			}
		}
		length, err := c.Do(t.Context(), "STRLEN", g.processes[0].Key())
		require.NoError(t, err)
		require.Less(t, length, int64(142+512*40+128*16+1))
		require.Greater(t, length, int64(20_000), "the test shows nothing")
		debt := g.debt()
		for i := len(sales) - 1; i >= 0; i-- {
			sales[i].Promise().Cancel()
		}
		require.Less(t, g.debt(), 0.7*debt)
		g.sleep(10 * time.Second)
		require.InDelta(t, 500, g.stored(), 1e-9)
	})
}

// Stretches side by side are one, from whichever end they grew: all but the newest are given back,
// and then that too.
func TestNeighboursJoin(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		n := c.share(2000)
		for name, order := range map[string]func(i int) int{
			"oldest first":    func(i int) int { return i },
			"newest first":    func(i int) int { return n - 1 - i },
			"from the middle": func(i int) int { return n/2 + (i/2)*(i%2*2-1) - 1 + (1 - i%2) },
		} {
			g := newGroup(t, c, "join "+name, 2, reserve.Must(pace.Bursty(1000, pace.WithBurst(0))))
			g.sell(1)
			var sales []shared.Sale
			for range n + 1 {
				sales = append(sales, g.sell(1))
			}
			for i := range n {
				sales[min(n-1, max(0, order(i)))].Promise().Cancel()
			}
			for _, s := range sales[:n] {
				s.Promise().Cancel() // does nothing, but for one that the order has left out
			}
			length, err := c.Do(t.Context(), "STRLEN", g.processes[0].Key())
			require.NoError(t, err)
			require.Less(t, length, int64(300), name)
			sales[n].Promise().Cancel()
			require.InDelta(t, 1e6, g.debt(), 2, name)
		}
	})
}

// Paid upfront, a request that waits holds permits of the store: given back, they can be had at
// once when its time has come, or when the queue behind it is gone.
func TestGivingBackOfOneThatHolds(t *testing.T) {
	eachScript(t, func(t *testing.T, c place) {
		for _, passes := range []bool{true, false} {
			p := reserve.Must(pace.Bursty(10, pace.WithCapacity(20), reserve.PayUpfront()))
			g := newGroup(t, c, fmt.Sprint("holds ", passes), 2, p)
			g.sell(14)
			holds := g.sell(10) // 6 of the store's, and 0.4 s
			require.InDelta(t, 4e8, holds.Wait, 2)
			behind := g.sell(3)
			holds.Promise().Cancel()
			if passes {
				g.sleep(450 * time.Millisecond)
				_, _, atOnce, err := g.processes[0].Look()
				require.NoError(t, err)
				require.EqualValues(t, 10, atOnce)
				g.sleep(250 * time.Millisecond)
				require.InDelta(t, 10, g.stored(), 1e-9)
			} else {
				behind.Promise().Cancel()
				require.InDelta(t, 6, g.stored(), 1e-9)
				require.Zero(t, g.debt())
			}
		}
	})
}

// A warming-up limiter saves nothing up while somebody waits: time that was given back and has
// passed is gone; permits out of the store are stored again at once.
func TestGivingBackWhileWarmingUp(t *testing.T) {
	eachScript(t, func(t *testing.T, c place) {
		g := newGroup(t, c, "warm", 2, reserve.Must(warmup.Policy(10, time.Second)))
		cold := g.stored()
		g.sell(2)
		require.InDelta(t, cold-2, g.stored(), 1e-9)
		second := g.sell(3)
		g.sell(100)
		require.Zero(t, g.stored())
		last := g.debt()
		second.Promise().Cancel()
		require.InDelta(t, 3, g.stored(), 1e-9)
		require.InDelta(t, last, g.debt(), 2)
		g.sleep(time.Duration(last) + time.Microsecond)
		require.InDelta(t, 3, g.stored(), 1e-4)

		// Time that has passed is gone, for the newest too.
		g.sell(103)
		g.sleep(time.Duration(g.debt()) + time.Microsecond)
		newest := g.sell(10)
		g.sleep(500 * time.Millisecond)
		newest.Promise().Cancel()
		require.Zero(t, g.debt())
		require.InDelta(t, 0, g.stored(), 1e-4)
	})
}

// A pause is no reservation: giving back the newest one does not shorten it.
func TestPauseIsNoReservation(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		for name, p := range map[string]*reserve.Policy{
			"bursty": reserve.Must(pace.Bursty(10, pace.WithCapacity(3))), "upfront": reserve.Must(pace.Bursty(10, pace.WithCapacity(3), reserve.PayUpfront())),
		} {
			g := newGroup(t, c, name, 2, p)
			newest := g.sell(8)
			require.NoError(t, g.processes[0].Pause(60e9))
			newest.Promise().Cancel()
			require.InDelta(t, 60e9, g.debt(), 2)
			during := g.sell(5)
			require.GreaterOrEqual(t, during.Wait, int64(60e9))
			require.NoError(t, g.processes[1].Pause(30e9), "an earlier one changes nothing")
			during.Promise().Cancel()
			g.sleep(10 * time.Second)
			require.InDelta(t, 50e9, g.debt(), 2)
			require.NoError(t, g.processes[1].Pause(80e9))
			require.InDelta(t, 80e9, g.debt(), 2)
			g.sleep(80 * time.Second)
			require.InDelta(t, 0, g.debt(), 2)
			require.InDelta(t, 3, g.stored(), 1e-9)
			g.sell(1)
			require.InDelta(t, 2, g.stored(), 1e-9)
			require.NoError(t, g.processes[0].Pause(10e9))
			g.sleep(10 * time.Second)
			require.InDelta(t, 2, g.stored(), 1e-9, "nothing is saved up in a pause")
		}
	})
}

// A pause that began while callers waited ends no earlier because they give up.
func TestPauseOutlivesTheQueue(t *testing.T) {
	eachScript(t, func(t *testing.T, c place) {
		g := newGroup(t, c, "outlives", 1, reserve.Must(pace.Bursty(1, pace.WithCapacity(2))))
		g.sell(2)
		g.sell(3) // 3 s of debt
		second := g.sell(10)
		require.NoError(t, g.processes[0].Pause(5e9))
		require.InDelta(t, 13e9, g.debt(), 2)
		second.Promise().Cancel()
		require.InDelta(t, 5e9, g.debt(), 2)
	})
}

// Resume ends a pause: promises made during it stay, and nobody else waits for its end.
func TestResume(t *testing.T) {
	eachScript(t, func(t *testing.T, c place) {
		g := newGroup(t, c, "resume", 2, reserve.Must(pace.Bursty(10, pace.WithCapacity(10))))
		require.NoError(t, g.processes[0].Pause(60e9))
		require.NoError(t, g.processes[1].Resume(t.Context()))
		require.Zero(t, g.debt())
		for range 10 {
			require.Zero(t, g.sell(1).Wait)
		}
		require.NoError(t, g.processes[0].Pause(60e9))
		late := g.sell(1)
		require.InDelta(t, 60e9, late.Wait, 2)
		g.sleep(time.Second)
		require.NoError(t, g.processes[1].Resume(t.Context()))
		require.InDelta(t, 59.1e9, g.debt(), 2)
		g.sleep(2 * time.Second)
		require.Zero(t, g.sell(5).Wait, "the time from Resume on is for sale")
		require.Zero(t, g.sell(5).Wait)
		require.InDelta(t, 57.1e9, g.sell(6).Wait, 2)
		late.Promise().Cancel()

		// Stored permits that were promised for the end: they are still in the store until then.
		g.sleep(2 * time.Minute)
		require.NoError(t, g.processes[0].Pause(60e9))
		kept := g.sell(4)
		require.NoError(t, g.processes[1].Resume(t.Context()))
		require.InDelta(t, 60e9, g.debt(), 2)
		kept.Promise().Cancel()
		require.NoError(t, g.processes[1].Resume(t.Context()))
		require.InDelta(t, 0, g.debt(), 2)
		require.InDelta(t, 10, g.stored(), 1e-9)
	})
}

// Permits that were sold before the key was lost do not come back.
func TestSoldBeforeTheKeyWasLost(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		for name, p := range map[string]*reserve.Policy{
			"bursty": reserve.Must(pace.Bursty(10, pace.WithCapacity(3))), "warm-up": reserve.Must(warmup.Policy(10, time.Second)),
		} {
			g := newGroup(t, c, "lost "+name, 1, p)
			old := []shared.Sale{g.sell(3), g.sell(30), g.sell(4), g.sell(4)}
			_, err := c.Do(t.Context(), "DEL", g.processes[0].Key())
			require.NoError(t, err)
			g.sleep(time.Millisecond)
			g.sell(3)
			g.sell(30)
			g.sell(4)
			g.sell(4)
			debt := g.debt()
			for _, s := range slices.Backward(old) {
				s.Promise().Cancel()
			}
			require.InDelta(t, debt, g.debt(), 1, name)
			require.Zero(t, g.stored())
		}
	})
}

// When the capacity changes, everything that is counted in permits scales with it; a limiter that
// had no store begins with none.
func TestRescaling(t *testing.T) {
	eachScript(t, func(t *testing.T, c place) {
		g := newGroup(t, c, "scale", 1, reserve.Must(pace.Bursty(10)))
		l := g.processes[0]
		first, second := g.sell(10), g.sell(10) // 1 s of debt
		g.sell(10)
		first.Promise().Cancel() // 10 deferred
		require.NoError(t, l.SetRate(t.Context(), 40))
		_, debt, atOnce, err := l.Look()
		require.NoError(t, err)
		require.InDelta(t, 2e9, debt, 2)
		require.EqualValues(t, 40, atOnce)
		g.sleep(2 * time.Second)
		require.InDelta(t, 40, g.stored(), 1e-9)
		g.sell(30)
		second.Promise().Cancel() // there was no room for it
		require.InDelta(t, 10, g.stored(), 1e-9)

		g = newGroup(t, c, "scale of nothing", 1, reserve.Must(pace.Bursty(10, pace.WithBurst(0))))
		other := newShared(t, c, "scale of nothing", reserve.Must(pace.Bursty(10)), shared.FakeTime(g.micros))
		free := g.sell(1)
		g.sleep(time.Second)
		g.sell(1)
		free.Promise().Cancel()
		g.processes = append(g.processes, other)[1:]
		require.Zero(t, g.stored())
	})
}

// A value that is not the state of a limiter is refused.
func TestStateOfSomethingElse(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		g := newGroup(t, c, "garbage", 1, reserve.Must(pace.Bursty(10)))
		for _, garbage := range []string{"garbage", "pac\x04too short", "pac\x03too short", "pac\x01 an old one, long enough to be a state of today, if it were one", ""} {
			_, err := c.Do(t.Context(), "SET", g.processes[0].Key(), garbage)
			require.NoError(t, err)
			_, err = g.processes[0].Sell(1, 0)
			require.ErrorContains(t, err, "is not the state of ")
		}
	})
}

// Settled at more: the difference is charged to the next callers.
func TestSettleAtMore(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		g := newGroup(t, c, "more", 2, reserve.Must(pace.Bursty(10, pace.WithCapacity(5))))
		s := g.sell(5)
		require.Zero(t, g.debt())
		s.Promise().Settle(25)
		require.InDelta(t, 2e9, g.debt(), 2)
		s.Promise().Cancel() // does nothing
		require.InDelta(t, 2e9, g.debt(), 2)
	})
}

// Permits that were granted without the store are charged as of then. What has overflowed since is forgiven, once, and
// never more than that.
func TestOwedHasAnAge(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		for after, want := range map[time.Duration]float64{0: -1, time.Second: 9, 2 * time.Second: 19, time.Hour: 20} {
			g := newGroup(t, c, fmt.Sprint("age ", after), 2, reserve.Must(pace.Bursty(10, pace.WithCapacity(20))))
			g.sell(1)
			g.processes[0].Owe(50) // of which a capacity counts
			g.sleep(after)
			level := func() float64 {
				shot, err := g.processes[0].Snapshot(t.Context())
				require.NoError(t, err)
				return shot.Level
			}
			require.InDelta(t, want, level(), 1e-6, after)
			if after == time.Hour {
				g.processes[0].Owe(20) // a moment ago: nothing has overflowed since
				require.InDelta(t, 0, level(), 1e-6)
			}
		}
	})
}
