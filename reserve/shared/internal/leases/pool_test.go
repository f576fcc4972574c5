package leases

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/smooth"
)

// Whatever is bought, promised and given back, in any order: the intervals hold what was bought and never overlap, the
// clock does not run back, no more is promised than there is, and a promise that nobody gives back does not become
// later.
func TestPoolWhateverHappens(t *testing.T) {
	for _, upfront := range []bool{false, true} {
		for seed := range uint64(100) {
			random := rand.New(rand.NewPCG(seed, 1))
			const horizon = int64(100 * time.Millisecond)
			h := newPool(upfront, horizon, func() {})
			type promised struct {
				slot  smooth.Slot
				ready int64
			}
			var promises []promised
			bought, used := 0, 0
			now, clock, debt := int64(0), int64(-1), 0.0
			for range 200 {
				passed := int64(random.ExpFloat64() * 1e7)
				now, debt = now+passed, max(0, debt-float64(passed))
				switch random.IntN(8) {
				case 0, 1:
					permits, stored := 1+random.IntN(40), random.Float64()*20
					bought += permits
					if random.IntN(8) == 0 { // at once, in spite of the debt
						stored = float64(permits)
					}
					cost := max(0, float64(permits)-stored) * 1e6
					begin := now + int64(debt)
					h.add(now, Lot{
						Permits: permits, AtOnce: stored, Begin: begin, End: begin + int64(cost), Ahead: debt, Interval: 1e6,
					})
					debt += cost
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
						kept := random.IntN(p.slot.Permits)
						h.Return(now, p.slot, kept)
						used -= p.slot.Permits - kept
						promises = append(promises[:i:i], promises[i+1:]...)
					}
				default:
					slot, ready, ok := h.Reserve(now, 1+random.IntN(5), now+random.Int64N(2*horizon))
					if ok {
						require.GreaterOrEqual(t, ready, now)
						require.Less(t, ready, int64(uncovered))
						promises = append(promises, promised{slot, ready})
						used += slot.Permits
					}
				}
				shows := h.advance(now)
				require.GreaterOrEqual(t, shows, clock)
				clock = shows
				require.GreaterOrEqual(t, h.free(), int64(0))
				gone := 0
				for _, r := range h.back {
					gone += r.Permits
				}
				require.LessOrEqual(t, used+gone, bought, "what has gone back is nobody's")
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

// A shop is a seller that sells whatever is asked for, at once.
type shop struct {
	begin    time.Time
	upfront  bool
	sold     int
	refunded []Refund
}

func (s *shop) Now() int64 { return int64(time.Since(s.begin)) }
func (s *shop) Charge(int) {}

func (s *shop) Terms() (*smooth.Curve, bool) {
	return &smooth.Curve{Rate: 1000, Capacity: 1000, Interval: 1e6, Refill: 1e-6, Full: true}, s.upfront
}

func (s *shop) Buy(_ context.Context, p *Purchase) {
	now := s.Now()
	s.sold += p.Permits
	p.Granted, p.Lot = true, Lot{Permits: p.Permits, AtOnce: float64(p.Permits), Begin: now, End: now, Interval: 1e6}
}

func (s *shop) Refund(_ context.Context, r Refund) error {
	s.refunded = append(s.refunded, r)
	return nil
}

// in100ms runs a test in a bubble, with a buyer whose horizon is 100 ms.
func in100ms(t *testing.T, test func(t *testing.T, s *shop, b *Buyer)) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{begin: time.Now()}
		b, err := New(s, 100*time.Millisecond, math.MaxInt64)
		require.NoError(t, err)
		test(t, s, b)
	})
}

// Leases need not end in the order in which they were bought: what each has left goes back, though nobody asks.
func TestLeasesThatEndOutOfOrder(t *testing.T) {
	in100ms(t, func(t *testing.T, s *shop, b *Buyer) {
		b.with(func(now int64, p *pool) {
			for _, in := range []time.Duration{time.Second, 0} {
				at := now + int64(in)
				b.lookAgain(p.add(now, Lot{Permits: 10, AtOnce: 10, Begin: at, End: at}).expires - now)
			}
		})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		b.with(func(_ int64, p *pool) {
			require.Empty(t, p.leases)
			require.Empty(t, p.back)
		})
		require.Len(t, s.refunded, 2)
	})
}

// What a call takes back with it is its own, whatever expires while it is on its way.
func TestWhatIsTakenAlongStays(t *testing.T) {
	h, q := &pool{back: make([]Refund, 0, 4)}, &Purchase{Permits: 1}
	h.back = append(h.back, Refund{Permits: 5})
	q.takeAlong(h)
	h.back = append(h.back, Refund{Permits: 7})
	require.Equal(t, 5, q.Back.Permits)
	require.Len(t, h.back, 1)
}

// A caller of the pool gives up while it waits: the pool then promises what it holds, and says so by its own clock.
func TestAPoolWhoseCallerGivesUp(t *testing.T) {
	in100ms(t, func(t *testing.T, _ *shop, b *Buyer) {
		time.Sleep(time.Second)
		const ms = int64(time.Millisecond)
		b.with(func(now int64, p *pool) {
			p.add(now, Lot{Permits: 10, Begin: now + 10*ms, End: now + 20*ms, Ahead: 1e7, Interval: 1e6})
		})
		r, err := b.local.Reserve(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, 10*time.Millisecond, r.Delay())
		r.Cancel()
		r, err = b.local.ReserveWithin(t.Context(), 1, 20*time.Millisecond)
		require.NoError(t, err)
		require.Equal(t, 10*time.Millisecond, r.Delay())
	})
}

// A pool that holds permits, and promises none of them, keeps nobody: a caller then asks the store.
func TestAPoolThatPromisesNothing(t *testing.T) {
	in100ms(t, func(t *testing.T, _ *shop, b *Buyer) {
		b.with(func(now int64, p *pool) {
			at := now + int64(time.Hour)
			p.add(now, Lot{Permits: 10, AtOnce: 10, Begin: at, End: at, Ahead: 3.6e12, Interval: 1e6})
			p.ledger.Charge(p.advance(now), 1<<30)
		})
		a, err := b.Reserve(t.Context(), Request{Permits: 1, MaxWait: int64(2 * time.Hour), Deadline: math.MaxInt64})
		require.NoError(t, err)
		require.True(t, a.Undecided)
	})
}
