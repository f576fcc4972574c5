package smooth

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// bursty is the curve of a limiter that stores up to capacity permits at no cost.
func bursty(rate, capacity float64) *Curve {
	return &Curve{
		Rate: rate, Capacity: capacity, Interval: Interval(rate), Refill: rate / 1e9, Full: true,
		AtRate: func(r float64) *Curve { return bursty(r, capacity*r/rate) },
	}
}

const ms = 1_000_000

// A step is something that happens to a ledger, at a time in milliseconds.
type step struct {
	at int64
	do string // reserve, take, charge, return, late, rate
	n  int    // permits, or which reservation (from 0) to return

	ready  int64   // ms
	ok     bool    // or not
	stored float64 // after it
	next   int64   // ms, after it
}

// Every rule of giving back, one after another.
func TestLedger(t *testing.T) {
	const yes, no = true, false
	for name, tt := range map[string]struct {
		capacity, stored float64
		upfront          bool
		steps            []step
	}{
		"prepayment": {5, 0, no, []step{
			{0, "reserve", 8, 0, yes, 0, 800},
			{0, "reserve", 1, 800, yes, 0, 900},
			{0, "take", 1, 0, no, 0, 900},
			{900, "take", 1, 0, yes, 0, 1000},
		}},
		"upfront": {5, 5, yes, []step{
			{0, "reserve", 3, 0, yes, 2, 0},
			{0, "reserve", 4, 200, yes, 0, 300}, // a request for one more is ready after its own 100 ms
			{0, "take", 1, 0, no, 0, 300},
			{400, "take", 2, 0, yes, 0, 500},
		}},
		"the newest rolls back": {5, 2, no, []step{
			{0, "reserve", 3, 0, yes, 0, 100},
			{0, "reserve", 2, 100, yes, 0, 300},
			{0, "return", 1, 0, yes, 0, 100},
			{0, "return", 0, 0, yes, 2, 0},
		}},
		"an older one is for sale": {5, 0, no, []step{
			{0, "reserve", 1, 0, yes, 0, 100},
			{0, "reserve", 3, 100, yes, 0, 400},
			{0, "reserve", 1, 400, yes, 0, 500},
			{0, "return", 1, 0, yes, 0, 100},
			{0, "reserve", 4, 500, yes, 0, 100}, // does not fit
			{0, "reserve", 2, 100, yes, 0, 300},
			{0, "reserve", 2, 900, yes, 0, 300}, // nor here, any more
			{0, "reserve", 1, 300, yes, 0, 1100},
		}},
		"slots for sale join": {5, 0, no, []step{
			{0, "reserve", 1, 0, yes, 0, 100},
			{0, "reserve", 1, 100, yes, 0, 200},
			{0, "reserve", 1, 200, yes, 0, 300},
			{0, "reserve", 1, 300, yes, 0, 400},
			{0, "reserve", 1, 400, yes, 0, 500},
			{0, "return", 1, 0, yes, 0, 100},
			{0, "return", 3, 0, yes, 0, 100},
			{0, "return", 2, 0, yes, 0, 100},
			{0, "reserve", 3, 100, yes, 0, 500},
		}},
		"and fall with the end of the queue": {5, 0, no, []step{
			{0, "reserve", 1, 0, yes, 0, 100},
			{0, "reserve", 1, 100, yes, 0, 200},
			{0, "reserve", 1, 200, yes, 0, 300},
			{0, "return", 1, 0, yes, 0, 100},
			{0, "return", 2, 0, yes, 0, 100},
			{0, "return", 0, 0, yes, 0, 0},
		}},
		"what passes unsold is stored when the debt is paid": {5, 0, no, []step{
			{0, "reserve", 1, 0, yes, 0, 100},
			{0, "reserve", 3, 100, yes, 0, 400},
			{0, "reserve", 1, 400, yes, 0, 500},
			{0, "return", 1, 0, yes, 0, 100},
			{250, "reserve", 2, 500, yes, 0, 250}, // half of it has passed, and is not for sale
			{699, "take", 1, 0, no, 0, 700},
			{700, "reserve", 3, 700, yes, 0, 700},
		}},
		"no more than fits": {2, 0, no, []step{
			{0, "reserve", 9, 0, yes, 0, 900},
			{0, "reserve", 5, 900, yes, 0, 1400},
			{0, "reserve", 1, 1400, yes, 0, 1500},
			{0, "return", 1, 0, yes, 0, 900},
			{1500, "take", 3, 0, yes, 0, 1600},
		}},
		"late, and nothing has flowed in": {5, 5, no, []step{
			{0, "reserve", 4, 0, yes, 1, 0},
			{0, "reserve", 3, 0, yes, 0, 200},
			{100, "late", 0, 0, yes, 0, 200}, // set aside
			{200, "take", 4, 0, yes, 0, 200},
		}},
		"late, and some would have spilled": {5, 5, no, []step{
			{0, "reserve", 4, 0, yes, 1, 0},
			{200, "take", 2, 0, yes, 1, 200}, // 2 have flowed in
			{200, "late", 0, 0, yes, 3, 200},
		}},
		"late, and all would have spilled": {5, 5, no, []step{
			{0, "reserve", 4, 0, yes, 1, 0},
			{500, "take", 5, 0, yes, 0, 500},
			{500, "late", 0, 0, yes, 0, 500},
		}},
		"late, in the reverse order": {5, 5, no, []step{
			{0, "reserve", 2, 0, yes, 3, 0},
			{0, "reserve", 3, 0, yes, 0, 0},
			{0, "reserve", 1, 0, yes, 0, 100},
			{50, "late", 1, 0, yes, 0, 100},
			{50, "late", 0, 0, yes, 0, 100},
			{100, "take", 5, 0, yes, 0, 100},
		}},
		"charged": {5, 0, no, []step{
			{0, "charge", 3, 0, yes, 0, 300},
			{0, "reserve", 1, 300, yes, 0, 400},
		}},
		"a rate change keeps the debt and scales the store": {5, 5, no, []step{
			{0, "rate", 20, 0, yes, 10, 0},
			{0, "reserve", 12, 0, yes, 0, 100},
			{0, "rate", 5, 0, yes, 0, 100},
			{0, "reserve", 1, 100, yes, 0, 300},
			{400, "rate", 10, 0, yes, 1, 400},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := New(bursty(10, tt.capacity), 0, tt.stored, tt.upfront)
			var slots []Slot
			for i, s := range tt.steps {
				ok := true
				switch s.do {
				case "reserve":
					var slot Slot
					slot, ok = l.Reserve(s.at*ms, s.n, math.MaxInt64)
					require.Equal(t, s.ready*ms, slot.Ready, "step %d: ready", i)
					slots = append(slots, slot)
				case "take":
					ok = l.Take(s.at*ms, s.n)
				case "charge":
					l.Charge(s.at*ms, s.n)
				case "return", "late":
					l.Return(s.at*ms, slots[s.n], slots[s.n].Permits, s.do == "late")
				case "rate":
					l.SetRate(s.at*ms, float64(s.n))
				}
				require.Equal(t, s.ok, ok, "step %d", i)
				require.InDelta(t, s.stored, l.Stored(s.at*ms), 1e-9, "step %d: stored", i)
				require.Equal(t, s.next*ms, l.NextFree(s.at*ms), "step %d: next free", i)
			}
		})
	}
}

// What is refused changes nothing but the slot that tells when it would have been.
func TestRefusedTakesNothing(t *testing.T) {
	l := New(bursty(10, 5), 0, 0, false)
	l.Reserve(0, 3, 0)
	before := *l
	slot, ok := l.Reserve(100*ms, 1, 300*ms-1)
	require.False(t, ok)
	require.Equal(t, Slot{Ready: 300 * ms}, slot)
	require.Equal(t, before, *l)
}

func TestWholeSaturates(t *testing.T) {
	for _, x := range []float64{math.MaxInt64, 1e300, math.Inf(1), math.NaN()} {
		n, rest := whole(x)
		require.Equal(t, int64(math.MaxInt64), n)
		require.Zero(t, rest)
	}
	n, rest := whole(3.25)
	require.Equal(t, int64(3), n)
	require.Equal(t, 0.25, rest)
	require.Equal(t, int64(math.MaxInt64), later(5, math.MaxInt64))
}
