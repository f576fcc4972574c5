package smooth

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// bursty is the curve of a limiter that stores up to capacity permits at no cost.
func bursty(rate, capacity float64) *Curve {
	return &Curve{
		Rate: rate, Capacity: capacity, Interval: Interval(rate), Refill: rate / 1e9,
		AtRate: func(r float64) *Curve { return bursty(r, capacity*r/rate) },
	}
}

const ms = 1_000_000

// A step is something that happens to a ledger, at a time in milliseconds.
type step struct {
	at int64
	do string // reserve, take, charge, return, keep1, rate, retime, pause, resume
	n  int    // permits, which reservation (from 0), permits a second, or ms

	ready  int64   // ms
	ok     bool    // or not
	stored float64 // after it
	next   int64   // ms, after it
}

// Every rule of giving back, one after another, at 10/s. The random tests of the root package
// judge combinations by a model; these say what is meant.
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
		"the newest was never there": {5, 2, no, []step{
			{0, "reserve", 3, 0, yes, 0, 100},
			{0, "reserve", 2, 100, yes, 0, 300},
			{0, "return", 1, 0, yes, 0, 100},
			{0, "return", 0, 0, yes, 2, 0},
		}},
		"those behind move up": {5, 0, no, []step{
			{0, "reserve", 1, 0, yes, 0, 100},
			{0, "reserve", 3, 100, yes, 0, 400},
			{0, "reserve", 1, 400, yes, 0, 500},
			{0, "return", 1, 0, yes, 0, 200},
			{0, "reserve", 4, 200, yes, 0, 600},
			{150, "keep1", 2, 0, yes, 0, 600}, // of one: nothing
			{150, "keep1", 3, 0, yes, 0, 300},
		}},
		"those that may go do": {5, 0, no, []step{
			{0, "reserve", 3, 0, yes, 0, 300},
			{0, "reserve", 1, 300, yes, 0, 400},
			{50, "return", 0, 0, yes, 0, 100}, // half a permit would be stored, so the one behind goes at once
		}},
		"late, and nothing is lost": {10, 10, no, []step{
			{0, "reserve", 6, 0, yes, 4, 0},
			{0, "take", 4, 0, yes, 0, 0},
			{400, "return", 0, 0, yes, 10, 400},
		}},
		"late, and some would have been too much": {5, 5, no, []step{
			{0, "reserve", 4, 0, yes, 1, 0},
			{200, "take", 2, 0, yes, 1, 200}, // at room for 2
			{200, "return", 0, 0, yes, 3, 200},
		}},
		"late, and all would have been too much": {5, 5, no, []step{
			{0, "reserve", 4, 0, yes, 1, 0},
			{500, "take", 5, 0, yes, 0, 500},
			{500, "return", 0, 0, yes, 0, 500},
		}},
		"late, in the reverse order": {5, 5, no, []step{
			{0, "reserve", 2, 0, yes, 3, 0},
			{0, "reserve", 3, 0, yes, 0, 0},
			{0, "reserve", 1, 0, yes, 0, 100},
			{50, "return", 1, 0, yes, 2.5, 50},
			{50, "return", 0, 0, yes, 4.5, 50},
		}},
		"upfront, larger than the store": {2, 2, yes, []step{
			{0, "reserve", 6, 400, yes, 0, 500},
			{400, "keep1", 0, 0, yes, 1, 400}, // the bucket held 6 only for it; of 1 it would have left 1
		}},
		"charged": {5, 0, no, []step{
			{0, "charge", 3, 0, yes, 0, 300},
			{0, "reserve", 1, 300, yes, 0, 400},
			{0, "charge", 2, 0, yes, 0, 600},
			{0, "return", 0, 0, yes, 0, 500},
		}},
		"a rate change keeps the debt and scales the store": {5, 5, no, []step{
			{0, "rate", 20, 0, yes, 10, 0},
			{0, "reserve", 12, 0, yes, 0, 100},
			{0, "rate", 5, 0, yes, 0, 100},
			{0, "reserve", 1, 100, yes, 0, 300},
			{400, "rate", 10, 0, yes, 1, 400},
		}},
		"Retime scales the debt and the queue": {5, 0, no, []step{
			{0, "reserve", 8, 0, yes, 0, 800},
			{0, "reserve", 2, 800, yes, 0, 1000},
			{200, "retime", 20, 0, yes, 0, 600}, // 300 and 100 ms from now
			{200, "return", 1, 0, yes, 0, 500},
			{200, "retime", 5, 0, yes, 0, 1400},
		}},
		"a pause moves what is to come": {5, 0, no, []step{
			{0, "reserve", 1, 0, yes, 0, 100},
			{0, "reserve", 1, 100, yes, 0, 200},
			{50, "pause", 1050, 0, yes, 0, 1200},
			{60, "pause", 500, 0, no, 0, 1200},
			{60, "return", 0, 0, yes, 0, 1100}, // half a permit would be stored when the second goes
			{100, "resume", 0, 0, yes, 0, 150},
			{100, "resume", 0, 0, no, 0, 150},
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
					var ready int64
					slot, ready, ok = l.Reserve(s.at*ms, s.n, math.MaxInt64)
					require.Equal(t, s.ready*ms, ready, "step %d: ready", i)
					slots = append(slots, slot)
				case "take":
					ok = l.Take(s.at*ms, s.n)
				case "charge":
					l.Charge(s.at*ms, s.n)
				case "return":
					l.Return(s.at*ms, slots[s.n], 0)
				case "keep1":
					l.Return(s.at*ms, slots[s.n], 1)
				case "rate":
					l.SetRate(s.at*ms, float64(s.n))
				case "retime":
					l.Retime(s.at*ms, float64(s.n))
				case "pause":
					ok = l.Pause(s.at*ms, int64(s.n)*ms)
				case "resume":
					ok = l.Resume(s.at * ms)
				}
				require.Equal(t, s.ok, ok, "step %d", i)
				require.InDelta(t, s.stored, l.Stored(s.at*ms), 1e-9, "step %d: stored", i)
				require.Equal(t, s.next*ms, l.NextFree(s.at*ms), "step %d: next free", i)
			}
		})
	}
}

// With a capacity that is a time, SetRate makes no request that waits later or earlier.
func TestRatesDelayNobodyThatWaits(t *testing.T) {
	const s = 1000 * ms
	unlimited := &Curve{Rate: math.Inf(1), Capacity: math.Inf(1)}
	for name, change := range map[string]func(l *Ledger){
		"ten times faster": func(l *Ledger) { l.SetRate(0, 10) },
		"ten times slower": func(l *Ledger) { l.SetRate(0, 0.1) },
		"without limit":    func(l *Ledger) { l.SetCurve(0, unlimited) },
		"Retime, and back": func(l *Ledger) { l.Retime(0, 10); l.Retime(0, 1) },
	} {
		for _, pause := range []int64{0, 5 * s} {
			l := New(bursty(1, 10), 0, 8, pause == 0)
			l.Pause(0, pause)
			first, ready, _ := l.Reserve(0, 9, math.MaxInt64)
			require.Equal(t, max(1*s, pause), ready, name)
			second, ready, _ := l.Reserve(0, 1, math.MaxInt64)
			require.Equal(t, pause+map[bool]int64{true: 2 * s, false: 1 * s}[pause == 0], ready, name)
			change(l)
			at, _ := l.Ready(0, first.Number)
			require.Equal(t, max(1*s, pause), at, name)
			for _, now := range []int64{0, s, ready - 1} {
				at, _ = l.Ready(now, second.Number)
				require.Equal(t, ready, at, name)
			}
		}
	}
}

// What is refused changes nothing.
func TestRefusedTakesNothing(t *testing.T) {
	l := New(bursty(10, 5), 0, 0, false)
	require.True(t, l.Take(0, 3))
	_, ready, ok := l.Reserve(100*ms, 1, 300*ms-1)
	require.False(t, ok)
	require.Equal(t, int64(300*ms), ready)
	require.False(t, l.waits)
	require.Zero(t, l.Stored(100*ms))
	require.Equal(t, int64(300*ms), l.NextFree(100*ms))
}

// A queue against a slice.
func TestQueue(t *testing.T) {
	type waiting struct {
		number uint64
		amount int64
	}
	for seed := range uint64(5) {
		random := rand.New(rand.NewPCG(2, seed))
		var q queue
		var all []waiting
		granted := map[uint64]int64{}
		number, clock := uint64(0), int64(1e6)
		for range 2000 {
			switch random.IntN(9) {
			case 0, 1, 2, 3:
				number += uint64(1 + random.IntN(10)/9)
				amount := random.Int64N(1000)
				q.push(entry{number, amount})
				all = append(all, waiting{number, amount})
			case 4:
				if len(all) > 0 {
					clock++
					require.Equal(t, all[0].amount, q.pop(clock))
					granted[all[0].number] = clock
					all = all[1:]
				}
			case 5:
				if len(all) > 0 {
					w := &all[random.IntN(len(all))]
					less := random.Int64N(w.amount + 1)
					i, _ := q.index(w.number)
					q.add(i, -less)
					w.amount -= less
				}
			case 6, 7:
				if len(all) > 0 {
					k := random.IntN(len(all))
					i, _ := q.index(all[k].number)
					q.leave(i)
					all = append(all[:k:k], all[k+1:]...)
				}
			}
			if random.IntN(100) == 0 {
				q.rescale(func(sum int64) int64 { return 3 * sum })
				for i := range all {
					all[i].amount *= 3
				}
			}
			var before int64
			for _, w := range all {
				i, known := q.index(w.number)
				require.True(t, known)
				require.GreaterOrEqual(t, i, q.granted)
				require.Equal(t, entry(w), q.entries[i])
				require.Equal(t, before, q.before(i))
				before += w.amount
			}
			require.Equal(t, len(all), len(q.entries)-q.granted-q.left)
			require.Equal(t, before, q.owed)
			require.Equal(t, len(all) == 0, q.empty())
			latest := int64(0)
			for n := range number {
				if i, known := q.index(n); known && i < q.granted {
					require.Equal(t, granted[n], q.entries[i].amount)
					latest = max(latest, granted[n])
				}
			}
			require.Equal(t, len(granted) > 0, latest > 0, "none of the latest is remembered")
		}
	}
}

// Requests that give up leave no memory, at the end of the queue nor in the middle.
func TestGivenUpTakeNoMemory(t *testing.T) {
	var q queue
	leave := func(number uint64) {
		i, known := q.index(number)
		require.True(t, known)
		q.leave(i)
	}
	q.push(entry{1, 1})
	for number := uint64(2); number < 100_000; number++ {
		q.push(entry{number, 1})
		leave(number)
	}
	require.LessOrEqual(t, cap(q.entries), 32)
	for number := uint64(100_000); number < 200_000; number++ {
		q.push(entry{number, 1})
	}
	for number := uint64(100_000); number < 199_999; number++ {
		leave(number)
	}
	require.LessOrEqual(t, cap(q.entries), 1024)
	i, _ := q.index(199_999)
	require.Equal(t, int64(1), q.before(i))
}

// The memory of a queue that is used without end is that of its longest moment.
func TestQueueIsBounded(t *testing.T) {
	var q queue
	for number := uint64(1); number < 100_000; number++ {
		q.push(entry{number, 1})
		if number > 10 {
			q.pop(0)
		}
	}
	require.LessOrEqual(t, cap(q.entries), 512)
	for !q.empty() {
		q.pop(0)
	}
	for number := uint64(200_000); number < 300_000; number++ {
		q.push(entry{number, 1})
	}
	for !q.empty() {
		q.pop(0)
	}
	q.push(entry{400_000, 1})
	require.LessOrEqual(t, cap(q.entries), 1024)
}

// least is the most that a request may get back.
func least(s headrooms[int64], number uint64) int64 {
	s = slices.Clone(s)
	return s.refund(number, math.MaxInt64)
}

// Headrooms against all of them.
func TestHeadrooms(t *testing.T) {
	for seed := range uint64(5) {
		random := rand.New(rand.NewPCG(3, seed))
		var s headrooms[int64]
		var all []int64 // right before the grant of number i+1
		for number := range uint64(300) {
			time := random.Int64N(100)
			s.push(headroom[int64]{number, time})
			all = append(all, time)
			of := uint64(random.IntN(len(all) + 1))
			back := s.refund(of, random.Int64N(10))
			for i := of; i < uint64(len(all)); i++ {
				all[i] -= back
			}
			for i := range all {
				require.Equal(t, slices.Min(all[i:]), least(s, uint64(i)))
			}
		}
	}
	s := headrooms[int64]{{7, 3}}
	s.push(headroom[int64]{5, 4})
	require.Equal(t, headrooms[int64]{{7, 3}}, s, "a smaller one that bounds more requests is enough")
}

// Too many headrooms: what is merged says less than before, never more.
func TestHeadroomsAreBounded(t *testing.T) {
	var s headrooms[int64]
	for number := uint64(1); number <= 10*maxHeadrooms; number++ {
		s.push(headroom[int64]{number - 1, int64(number)})
		require.LessOrEqual(t, len(s), maxHeadrooms)
	}
	for number := range uint64(10 * maxHeadrooms) {
		require.LessOrEqual(t, least(s, number), int64(number+1))
	}
	require.Greater(t, least(s, 10*maxHeadrooms-10), int64(10*maxHeadrooms-20))
}

func TestTimesSaturate(t *testing.T) {
	for _, x := range []float64{math.MaxInt64, 1e300, math.Inf(1), math.NaN()} {
		require.Equal(t, int64(math.MaxInt64), roundUp(x))
	}
	for _, x := range []float64{math.MaxInt64, 1e300, math.Inf(1)} {
		require.Equal(t, int64(math.MaxInt64), roundDown(x))
		require.Equal(t, int64(-math.MaxInt64), roundUp(-x))
	}
	require.Equal(t, int64(3), roundUp(3+epsilon/2))
	require.Equal(t, int64(3), roundDown(3-epsilon/2))
	require.Equal(t, int64(math.MaxInt64), addSaturating(5, math.MaxInt64))
}

// SetRate up and Retime down, over and over, leave no number that is too small or too large to count
// with: what waits keeps its place.
func TestManyChangesOfTheRate(t *testing.T) {
	fixed := func(rate float64) *Curve { return bursty(rate, 10) }
	for _, factor := range []float64{1e30, 1e-30} {
		l := New(fixed(10), 0, 10, false)
		granted, _, _ := l.Reserve(0, 10, 0)
		for range 20 {
			l.SetRate(0, 10*factor)
			l.Retime(0, 10)
		}
		l.Return(0, granted, 0)
		require.GreaterOrEqual(t, l.Stored(0), 0.0)
		l = New(fixed(10), 0, 0, false)
		l.Charge(0, 10)
		half, _, _ := l.Reserve(0, 4, math.MaxInt64)
		behind, _, _ := l.Reserve(0, 1, math.MaxInt64)
		l.SetRate(0, 20)
		l.history.price.scale = 1e-120 // as after many
		l.Retime(0, 10)
		first, _ := l.Ready(0, half.Number)
		second, _ := l.Ready(0, behind.Number)
		l.Return(0, half, 2)
		at, known := l.Ready(0, half.Number)
		require.True(t, known)
		require.Equal(t, first, at)
		at, _ = l.Ready(0, behind.Number)
		require.GreaterOrEqual(t, at, first+(second-first)/2-1, "never more than it was")
		require.LessOrEqual(t, at, second)
	}
}

// Above 1e9/s a nanosecond holds more than one permit, and the clock tells no more. Costs are rounded up, so after an
// idle time the first nanosecond gives one, and each one after it what the rate does.
func TestManyPermitsANanosecond(t *testing.T) {
	for _, rate := range []float64{1.5e9, 3e9, 1e12, 7.3e12} {
		l := New(bursty(rate, 0), 0, 0, false)
		granted := 0
		for now := range int64(20) {
			for l.Take(now+100, 1) {
				granted++
			}
			require.InDelta(t, 1+rate/1e9*float64(now), granted, rate/1e12+1, "%v/s", rate)
			require.Equal(t, now+101, l.NextFree(now+100))
		}
		require.InDelta(t, 1, l.TakeUpTo(500, 1_000_000), rate/1e12+1)
		require.InDelta(t, rate/1e9, l.TakeUpTo(501, 1_000_000), rate/1e12+1)
		require.False(t, l.Take(501, 1))
	}
}

// Above 1e9/s many amounts in the queue are 0 ns. When their requests give up, what they cost is not lost: it comes off
// what later requests cost.
func TestLessThanANanosecondComesBack(t *testing.T) {
	const rate = 3e9
	l := New(bursty(rate, 0), 0, 0, false)
	require.True(t, l.Take(0, 3000)) // until 1000 ns
	var slots []Slot
	for range 3000 {
		slot, _, ok := l.Reserve(0, 1, math.MaxInt64)
		require.True(t, ok)
		slots = append(slots, slot)
	}
	require.Equal(t, int64(2000), l.NextFree(0))
	for _, slot := range slots {
		if i, known := l.history.queue.index(slot.Number); known && l.history.queue.entries[i].amount == 0 {
			l.Return(0, slot, 0)
		}
	}
	_, ready, _ := l.Reserve(0, 2000, math.MaxInt64)
	require.Equal(t, int64(2000), ready)
	require.InDelta(t, 2000, l.NextFree(0), 2, "1000 are left and 2000 are new, and each 3 take 1 ns")
}

// Callers that reserve 1000 and settle at 300 to 500 use as much of a limiter whose rate changes ten times a second as
// of one whose rate does not: refunds across those changes are worth what they were.
func TestRefundsOverManyChanges(t *testing.T) {
	used := func(rateChanges bool) float64 {
		random := rand.New(rand.NewPCG(1, 1))
		type caller struct {
			slot Slot
			done int64 // when it settles; 0: it waits
		}
		callers, used, change := make([]caller, 4), 0., int64(100*ms)
		l := New(bursty(1000, 1000), 0, 1000, false)
		reserve := func(now int64) (c caller) {
			c.slot, _, _ = l.Reserve(now, 1000, math.MaxInt64)
			return c
		}
		for i := range callers {
			callers[i] = reserve(0)
		}
		for now := int64(0); now < 300_000*ms; now += ms {
			if rateChanges && now == change {
				l.Retime(now, 800+400*random.Float64())
				change += 100 * ms
			}
			for i := range callers {
				c := &callers[i]
				switch {
				case c.done == 0 && !l.Waits(now, c.slot.Number):
					c.done = now + random.Int64N(1000*ms)
				case c.done > 0 && now >= c.done:
					kept := 300 + random.IntN(200)
					used += float64(kept)
					l.Return(now, c.slot, kept)
					*c = reserve(now)
				}
			}
		}
		return used / 300_000
	}
	steady := used(false)
	require.Greater(t, steady, 0.8)
	require.InEpsilon(t, steady, used(true), 0.04)
}

// A refund whose permits would have overflowed since is worth nothing, after however many changes of the rate.
func TestMergedChangesKeepHeadrooms(t *testing.T) {
	for before := range 3 { // changes before the request
		for n := range 140 { // and after it, and after the store was full again and emptied
			rate := 10.
			l := New(bursty(rate, rate), 0, rate, true)
			change := func(now int64) {
				rate *= 1.01
				l.Retime(now, rate)
			}
			for range before {
				change(0)
			}
			s, _, ok := l.Reserve(0, 10, math.MaxInt64)
			if !ok {
				t.Fatal("not granted")
			}
			now := int64(11_000 * ms) // the store has been full since
			for l.Take(now, 1) {
			}
			left := l.Stored(now)
			for range n {
				change(now)
			}
			left = left / 10 / math.Pow(1.01, float64(before)) * rate
			l.Return(now, s, 0)
			if got := l.Stored(now) - left; got > 1e-6 {
				t.Errorf("%d changes before, %d after: %v permits come back", before, n, got)
				break
			}
		}
	}
}

// A limit that was lifted for a while: what is owed keeps its time, and the store is for afterwards. At 4/s, 40 are owed;
// without a limit 5 are promised at 10 s, and they stay there (C8: 9 s). Then 4 are stored, and one is prepaid.
func TestUnlimitedForAWhile(t *testing.T) {
	const s = 1000 * ms
	l := New(bursty(4, 4), 0, 0, false)
	require.True(t, l.Take(0, 40))
	inf := &Curve{Rate: math.Inf(1), Capacity: math.Inf(1), AtRate: func(r float64) *Curve { return bursty(r, r) }}
	l.SetCurve(0, inf)
	waits, ready, _ := l.Reserve(0, 5, math.MaxInt64)
	require.Equal(t, int64(10*s), ready)
	l.SetRate(0, 4)
	ready, _ = l.Ready(0, waits.Number)
	require.Equal(t, int64(10*s), ready)
	for range 5 {
		_, ready, _ = l.Reserve(0, 1, math.MaxInt64)
		require.Equal(t, int64(10*s), ready)
	}
	require.Equal(t, int64(10*s+s/4), l.NextFree(0))
	require.Zero(t, l.Stored(10*s))
	require.Equal(t, 3.0, l.Stored(11*s))
}

// A store that takes 146 years to fill gives what it has, and gets back what was not used; and the rate is the rate.
func TestStoreOfAMillionYears(t *testing.T) {
	const day = 86400 * 1000 * ms
	l := New(bursty(1e-6, 1e6), 0, 1e6, true)
	slot, ready, ok := l.Reserve(0, 1e6, math.MaxInt64)
	require.True(t, ok)
	require.Zero(t, ready)
	l.Return(0, slot, 0)
	require.Equal(t, 1e6, l.Stored(0))
	require.True(t, l.Take(0, 1e6))
	require.Equal(t, int64(1e15), l.NextFree(0), "a permit each 11.6 days")
	require.InDelta(t, 365*86400e-6, l.Stored(365*day), 1e-6)
	l = New(bursty(1e-10, 1), 0, 1, true)
	require.True(t, l.Take(0, 1))
	require.False(t, l.Take(day, 1))
}

// Guava's formulas for a bursty limiter, as a check of promises over changes of the rate, also to no limit and back.
func TestGuavasFormulas(t *testing.T) {
	const burst = 1.5 // seconds
	var curve func(rate float64) *Curve
	curve = func(rate float64) *Curve {
		if math.IsInf(rate, 1) {
			return &Curve{Rate: rate, Capacity: rate, AtRate: curve}
		}
		return &Curve{Rate: rate, Capacity: rate * burst, Interval: Interval(rate), Refill: rate / 1e9, AtRate: curve}
	}
	waits := 0
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(8, seed))
		rate, stored, next, now := 4., 0., 0., int64(0)
		l := New(curve(rate), 0, 0, false)
		resync := func() {
			if float64(now) > next {
				if math.IsInf(rate, 1) {
					stored = rate
				} else {
					stored = min(rate*burst, stored+(float64(now)-next)*rate/1e9)
				}
				next = float64(now)
			}
		}
		for range 30 {
			switch random.IntN(4) {
			case 0:
				now += random.Int64N(3000 * ms)
			case 1:
				rates := []float64{1, 4, 7.3, 100, math.Inf(1)}
				to := rates[random.IntN(len(rates))]
				if resync(); to != rate {
					switch {
					case math.IsInf(rate, 1):
						stored = to * burst
					case !math.IsInf(to, 1):
						stored *= to / rate
					}
					rate = to
				}
				l.SetRate(now, to)
			default:
				n := 1 + random.IntN(20)
				_, ready, _ := l.Reserve(now, n, math.MaxInt64)
				resync()
				require.InDelta(t, next, ready, 100, "seed %d", seed)
				waits++
				if !math.IsInf(rate, 1) {
					taken := min(float64(n), stored)
					stored -= taken
					next += (float64(n) - taken) * 1e9 / rate
				}
			}
		}
	}
	require.Greater(t, waits, 10_000)
}

// fixed is bursty, with a capacity that is a number of permits at any rate.
func fixed(rate, capacity float64) *Curve {
	return &Curve{
		Rate: rate, Capacity: capacity, Interval: Interval(rate), Fixed: true,
		AtRate: func(r float64) *Curve { return fixed(r, capacity) },
	}
}

// What was sold before a time without a limit does not come back, and what is sold after it does.
func TestRefundAfterATimeWithoutLimit(t *testing.T) {
	l := New(fixed(10, 10), 0, 10, false)
	before, _, _ := l.Reserve(0, 5, 0)
	l.Retime(0, math.Inf(1))
	l.Retime(0, 10)
	require.Equal(t, 10.0, l.Stored(0))
	after, _, _ := l.Reserve(0, 8, 0)
	l.Return(0, before, 0)
	require.InDelta(t, 2, l.Stored(0), 1e-6)
	l.Return(0, after, 0)
	require.InDelta(t, 10, l.Stored(0), 1e-6)
}

// A smaller store holds less, also where permits lie beside the bucket, and a price scales with the store.
func TestASmallerStore(t *testing.T) {
	l := New(fixed(1e-7, 1e6), 0, 1e6, true)
	l.SetCurve(0, fixed(2e-7, 5e5))
	require.False(t, l.Take(0, 6e5))
	require.True(t, l.Take(0, 5e5))
	require.Equal(t, 2.0, scaleStore(1, fixed(1, 10), fixed(1, 20)))
}

// What the first request has collected stays as many permits, also where nothing can be stored.
func TestCollectedPermitsStay(t *testing.T) {
	l := New(fixed(1, 0), 0, 0, true)
	first, _, _ := l.Reserve(0, 5, math.MaxInt64)
	second, _, _ := l.Reserve(0, 4, math.MaxInt64)
	l.SetRate(3000*ms, 10) // it has 3 of 5
	at, _ := l.Ready(3000*ms, first.Number)
	require.Equal(t, int64(3200*ms), at)
	l.Return(3000*ms, first, 0)
	at, _ = l.Ready(3000*ms, second.Number)
	require.Equal(t, int64(3100*ms), at)
}
