package shared

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/smooth"
)

// Whatever is bought, promised, given back and folded, in any order: the intervals hold what was bought and
// never overlap, the clock does not run back, no more is promised than there is, and a promise that
// nobody gives back does not become later.
func TestPoolWhateverHappens(t *testing.T) {
	for _, upfront := range []bool{false, true} {
		for seed := range uint64(100) {
			random := rand.New(rand.NewPCG(seed, 1))
			terms, err := newTerms(reserve.Must(newCurve(1000, float64(random.IntN(50)))), upfront)
			require.NoError(t, err)
			const horizon = int64(100 * time.Millisecond)
			h := newPool(upfront, horizon, func() {})
			type promised struct {
				slot  smooth.Slot
				ready int64
			}
			var promises []promised
			now, clock, debt := int64(0), int64(-1), 0.0
			for range 200 {
				passed := int64(random.ExpFloat64() * 1e7)
				now, debt = now+passed, max(0, debt-float64(passed))
				switch random.IntN(8) {
				case 0, 1:
					s := slot{permits: 1 + random.IntN(40), terms: terms, begin: debt, deferred: random.IntN(8) == 0}
					s.stored = random.Float64() * 20
					_, cost := terms.curve.Price(s.stored, float64(s.permits))
					h.add(now, now+int64(s.begin), s)
					if !s.deferred {
						debt += cost
					}
				case 2:
					if random.IntN(4) == 0 {
						h.release(now)
						require.Zero(t, h.free())
						debt = max(0, debt-1e7) // and Redis may sell it again
					}
				case 3:
					if len(promises) > 0 {
						i := random.IntN(len(promises))
						p := promises[i]
						h.Return(now, p.slot, random.IntN(p.slot.Permits))
						promises = append(promises[:i:i], promises[i+1:]...)
					}
				default:
					slot, ready, ok := h.Reserve(now, 1+random.IntN(5), now+random.Int64N(2*horizon))
					if ok {
						require.GreaterOrEqual(t, ready, now)
						require.Less(t, ready, int64(uncovered))
						promises = append(promises, promised{slot, ready})
					}
				}
				shows := h.advance(now)
				require.GreaterOrEqual(t, shows, clock)
				clock = shows
				require.GreaterOrEqual(t, h.free(), int64(0))
				ticks, end := h.passed, int64(math.MinInt64)
				for _, s := range h.intervals {
					require.GreaterOrEqual(t, s.begin, end)
					require.GreaterOrEqual(t, s.end, s.begin)
					end = s.end
					ticks += s.ticks
				}
				require.Equal(t, h.bought*tick, ticks)
				for i, p := range promises {
					if ready, waits := h.Ready(now, p.slot.Number); waits {
						require.Less(t, ready, int64(uncovered))
						promises[i].ready = ready
					}
				}
			}
			h.advance(now + 100*horizon)
			require.Zero(t, h.free())
			require.Empty(t, h.leases)
		}
	}
}

func newCurve(rate, capacity float64) (*smooth.Curve, error) {
	p, err := pace.Bursty(rate, pace.WithCapacity(capacity))
	if err != nil {
		return nil, err
	}
	return Terms(p).Curve, nil
}

// Leases need not end in the order in which they were bought: what each has left goes back, though nobody asks.
func TestLeasesThatEndOutOfOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &generous{}
		l, err := New(s, "order", reserve.Must(pace.Bursty(1000)), WithLease(100*time.Millisecond))
		require.NoError(t, err)
		l.leases.with(func(now int64, h *pool) {
			terms := l.terms.Load()
			for _, s := range []slot{{permits: 10, begin: 1e9, terms: terms}, {permits: 10, deferred: true, terms: terms}} {
				of := h.add(now, now+int64(s.begin), s)
				l.leases.lookAgain(of.expires - now)
			}
		})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		l.leases.with(func(_ int64, h *pool) {
			require.Empty(t, h.leases)
			require.Empty(t, h.back)
		})
		require.Equal(t, 3, s.asked, "one for the time")
	})
}

// Of a lease that is paid upfront twice something goes back: not the same stretch.
func TestALeaseGoesBackInParts(t *testing.T) {
	terms, err := newTerms(reserve.Must(newCurve(1000, 5)), true)
	require.NoError(t, err)
	l := lease{slot: slot{number: 1, permits: 25, stored: 5, begin: 7e6, terms: terms}}
	stretch := func(permits int) (begin, length float64) {
		r := l.refund(permits)
		require.Equal(t, permits, r.permits)
		back := r.comeback(terms)
		return back.begin, back.length
	}
	begin, length := stretch(8)
	require.InDelta(t, 7e6, begin, 1)
	require.InDelta(t, 8e6, length, 1)
	begin, length = stretch(10)
	require.InDelta(t, 15e6, begin, 1)
	require.InDelta(t, 10e6, length, 1)
	begin, length = stretch(7) // of these 5 came out of the store
	require.InDelta(t, 25e6, begin, 1)
	require.InDelta(t, 2e6, length, 1)
}

// A call's answer is lost: Redis was charged for what that asked for, and not for callers that joined
// the line meanwhile, and were granted without Redis.
func TestALostLeasePaysForItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &generous{}
		l, err := New(s, "lost", reserve.Must(pace.Bursty(1000)), WithLease(100*time.Millisecond), FailOpen())
		require.NoError(t, err)
		_, err = l.Stored(t.Context())
		require.NoError(t, err)
		s.deaf = true
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if _, err := l.Reserve(context.Background(), 1); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(time.Millisecond)
		}
		all.Wait()
		require.Equal(t, 1, s.charged)
		require.Equal(t, int64(19), l.Owed())
	})
}

// What a call takes back with it is its own, whatever expires while it is on its way.
func TestWhatIsTakenAlongStays(t *testing.T) {
	h, q := &pool{back: make([]refund, 0, 4)}, buys(1, 0, 0)
	h.back = append(h.back, refund{permits: 5})
	(&leases{}).takeAlong(q, h)
	h.back = append(h.back, refund{permits: 7})
	require.Equal(t, 5, q.refund.permits)
	require.Len(t, h.back, 1)
}

// A caller of the pool gives up while it waits: the pool then promises what it holds, and says so by its own clock.
func TestAPoolWhoseCallerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(&generous{}, "leaves", reserve.Must(pace.Bursty(1000)), WithLease(100*time.Millisecond))
		require.NoError(t, err)
		time.Sleep(time.Second)
		l.leases.with(func(now int64, p *pool) {
			p.add(now, now+int64(10*time.Millisecond), slot{permits: 10, begin: 1e7, terms: l.terms.Load()})
		})
		r, err := l.leases.local.Reserve(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, 10*time.Millisecond, r.Delay())
		r.Cancel()
		r, err = l.leases.local.ReserveWithin(t.Context(), 1, 20*time.Millisecond)
		require.NoError(t, err)
		require.Equal(t, 10*time.Millisecond, r.Delay())
	})
}

// A pool that holds permits, and promises none of them, keeps nobody: a caller then asks the store.
func TestAPoolThatPromisesNothing(t *testing.T) {
	s := &generous{}
	l, err := New(s, "stuck", reserve.Must(pace.Bursty(1000)), WithLease(100*time.Millisecond))
	require.NoError(t, err)
	l.leases.with(func(now int64, p *pool) {
		p.add(now, now+int64(time.Hour), slot{permits: 10, begin: float64(time.Hour), terms: l.terms.Load()})
		p.ledger.Charge(p.advance(now), 1<<30)
	})
	answered := make(chan error, 1)
	go func() {
		_, err := l.ReserveWithin(context.Background(), 1, 2*time.Hour)
		answered <- err
	}()
	select {
	case err := <-answered:
		require.NoError(t, err)
		require.Equal(t, 1, s.charged)
	case <-time.After(10 * time.Second):
		require.Fail(t, "the caller asks the pool without end")
	}
}
