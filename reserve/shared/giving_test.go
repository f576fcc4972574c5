package shared_test

import (
	"cmp"
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
)

// A sale is what one client was promised, and how many permits it used as far as is known.
type sale struct {
	begin     float64 // the stretch of time that it bought begins, in nanoseconds
	ready     float64
	fromStore float64 // permits that cost no time
	deferred  bool    // granted at once although others waited: it bought no time
	permits   int     // all of them
	used      int     // as it is known now
	promise   reserve.Promise
}

// An oracle is the definition of giving back where no promise can be moved: nothing is remembered
// but the sales, and everything is found by going through all of them again.
type oracle struct {
	interval, capacity float64
	now                float64
	sales              []*sale
}

// end is when the sale's stretch ends, by what is known now.
func (o *oracle) end(s *sale) float64 {
	if s.deferred || s.used == 0 {
		return 0
	}
	return s.begin + max(0, float64(s.used)-s.fromStore)*o.interval
}

// debt is how long the queue is: stretches given back at its end are not there any more.
func (o *oracle) debt() float64 {
	longest := o.now
	for _, s := range o.sales {
		longest = max(longest, o.end(s))
	}
	return longest - o.now
}

// level is what the bucket holds now: it began full, rises up to its capacity, and falls
// when each went, by what that came to.
func (o *oracle) level() float64 {
	gone := slices.DeleteFunc(slices.Clone(o.sales), func(s *sale) bool { return s.ready > o.now })
	slices.SortStableFunc(gone, func(a, b *sale) int { return cmp.Compare(a.ready, b.ready) })
	level, at := o.capacity, 0.0
	for _, s := range gone {
		level = min(o.capacity, level+(s.ready-at)/o.interval)
		level, at = level-float64(s.used), s.ready
	}
	return min(o.capacity, level+(o.now-at)/o.interval)
}

// spare is what the bucket will hold when the one that went last is paid for: nobody who was
// promised a later time misses it.
func (o *oracle) spare() float64 {
	paid := 0.0
	for _, s := range o.sales {
		if s.ready <= o.now {
			paid = max(paid, o.end(s)-o.now)
		}
	}
	return o.level() + paid/o.interval
}

// largest is the largest promise that may not be paid for yet.
func (o *oracle) largest() (n float64) {
	for _, s := range o.sales {
		if !s.deferred && s.begin+float64(s.permits)*o.interval > o.now {
			n = max(n, float64(s.permits))
		}
	}
	return n
}

// After every step the script says what the oracle does: the debt, what is stored, and what can be
// had at once.
func TestGivingBack(t *testing.T) {
	eachScript(t, func(t *testing.T, c place) {
		var n tally
		count := c.share(queues(200))
		for seed := range uint64(count) {
			givingBack(t, c, seed, &n)
		}
		t.Logf("%+v", n)
		require.Greater(t, n.returned, 2*count)
		require.Positive(t, n.atOnce)
		if !c.brief() { // else there are too few
			require.Greater(t, n.atOnce, count/2)
			require.Less(t, n.missed, n.possible/10)
		}
	})
}

// A tally counts what a test has seen.
type tally struct {
	steps, returned int
	atOnce          int // granted at once although others waited
	possible        int // steps at which that was possible
	missed          int // and the script did not: it remembers the largest promise for longer than it runs
}

func givingBack(t *testing.T, c place, seed uint64, n *tally) {
	random := rand.New(rand.NewPCG(seed, 10))
	o := &oracle{interval: []float64{1e8, 1e6 / 3}[random.IntN(2)], capacity: []float64{0, 1, 2.5, 8, 30}[random.IntN(5)]}
	rate := 1e9 / o.interval
	begin := int64(1_790_000_000_000_000)
	micros := begin
	var clients []*shared.Limiter
	for range 1 + random.IntN(3) {
		clients = append(clients, newShared(t, c, fmt.Sprint("giving ", seed), reserve.Must(pace.Bursty(rate, pace.WithCapacity(o.capacity))), shared.FakeTime(&micros)))
	}
	largest := 1 + random.IntN(6)
	late := 1 + random.IntN(8) // 1: only old ones come back, 8: mostly new ones
	var held []*sale
	for i := range 60 + random.IntN(60) {
		at := fmt.Sprintf("seed %d, step %d, capacity %v", seed, i, o.capacity)
		client := clients[random.IntN(len(clients))]
		switch random.IntN(9) {
		case 0, 1, 2, 3:
			permits := 1 + random.IntN(largest)
			debt, level, spare := o.debt(), o.level(), o.spare()
			got, err := client.Sell(permits, math.MaxInt64)
			require.NoError(t, err, at)
			s := &sale{begin: o.now + debt, permits: permits, used: permits, promise: got.Promise()}
			if got.Wait == 0 && debt >= 1 {
				require.GreaterOrEqual(t, spare+1e-6, float64(permits), at)
				require.GreaterOrEqual(t, level, -1e-6, "%s: the one before is not paid for", at)
				s.begin, s.deferred = o.now, true
				n.atOnce++
			} else {
				require.InDelta(t, debt, got.Wait, 2, at)
				if debt == 0 {
					s.fromStore = min(level, float64(permits))
				}
			}
			s.ready = s.begin
			o.sales, held = append(o.sales, s), append(held, s)
		case 4, 5:
			micros += int64(random.ExpFloat64() * o.interval / 1000 * float64(largest))
			o.now = float64(micros-begin) * 1000
		default:
			if len(held) == 0 {
				continue
			}
			j := random.IntN(len(held))
			if random.IntN(8) < late {
				j = max(0, len(held)-1-random.IntN(4))
			}
			s := held[j]
			if random.IntN(4) == 0 && s.used > 1 { // first a part
				s.used = 1 + random.IntN(s.used-1)
				var err error
				s.promise, err = shared.Part(s.promise, s.used)
				require.NoError(t, err, at)
				break
			}
			held = slices.Delete(held, j, j+1)
			was := s.used
			s.used = 0
			if random.IntN(3) == 0 {
				s.used = random.IntN(was)
			}
			s.promise.Settle(s.used)
			s.promise.Cancel() // does nothing
			n.returned++
		}
		stored, debt, atOnce, err := client.Look()
		require.NoError(t, err, at)
		require.InDelta(t, o.debt(), debt, 2, at)
		if o.debt() == 0 {
			require.InDelta(t, o.level(), stored, 1e-5, at)
			require.Zero(t, atOnce, at)
		} else if debt > 2 {
			require.LessOrEqual(t, float64(atOnce), o.spare()+1e-5, at)
			if o.spare()-1e-5 >= max(1, o.largest()) {
				n.possible++
				if atOnce == 0 {
					n.missed++
				} else {
					require.InDelta(t, o.spare(), atOnce, 1+1e-5, at)
				}
			}
		}
		n.steps++
	}
}

// Callers that settle for less soon after they went, as those of a language model do, get all of it back to within 2 %,
// however many went: only few headrooms are remembered, but the newest are remembered best.
func TestSettledSoonAfterManyWent(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		for seed, later := range []int{20, 5, 50}[:max(1, c.share(3))] {
			random := rand.New(rand.NewPCG(uint64(seed), 12))
			o := &oracle{interval: 1e8, capacity: 3000}
			begin := int64(1_790_000_000_000_000)
			micros := begin
			policy := reserve.Must(pace.Bursty(10, pace.WithCapacity(o.capacity)))
			l := newShared(t, c, fmt.Sprint("soon ", seed), policy, shared.FakeTime(&micros))
			returned := 0.0
			for i := range 800 {
				n := 2 * (1 + random.IntN(3))
				got, err := l.Sell(n, 0)
				require.NoError(t, err)
				require.True(t, got.Granted)
				o.sales = append(o.sales, &sale{
					begin: o.now, ready: o.now, fromStore: float64(n), permits: n, used: n, promise: got.Promise(),
				})
				micros += int64(random.ExpFloat64() * 1e5)
				o.now = float64(micros-begin) * 1000
				if i >= later {
					s := o.sales[i-later]
					s.used = s.permits / 2
					s.promise.Settle(s.used)
					returned += float64(s.used)
				}
			}
			stored, err := l.Stored(t.Context())
			require.NoError(t, err)
			t.Logf("%.0f permits came back %d requests later: %.1f stored, %.1f by the oracle", returned, later, stored, o.level())
			require.LessOrEqual(t, stored, o.level()+1e-5)
			require.GreaterOrEqual(t, stored, o.level()-0.02*returned)
			require.Less(t, stored, 2900.0, "the test shows nothing")
		}
	})
}

// Of very many that went, the script remembers the headroom before each only roughly: a late refund is never worth more
// than the oracle says, and even if most of them come back in any order, at most a quarter less.
func TestGivingBackAfterManyWent(t *testing.T) {
	eachScript(t, func(t *testing.T, c place) {
		for seed := range uint64(c.share(6)) {
			random := rand.New(rand.NewPCG(seed, 11))
			o := &oracle{interval: 1e8, capacity: 3000}
			begin := int64(1_790_000_000_000_000)
			micros := begin
			policy := reserve.Must(pace.Bursty(10, pace.WithCapacity(o.capacity)))
			l := newShared(t, c, fmt.Sprint("many ", seed), policy, shared.FakeTime(&micros))
			sell := func() {
				n := 1 + random.IntN(3)
				got, err := l.Sell(n, 0)
				require.NoError(t, err)
				require.True(t, got.Granted)
				o.sales = append(o.sales, &sale{
					begin: o.now, ready: o.now, fromStore: float64(n), permits: n, used: n, promise: got.Promise(),
				})
			}
			for i := range 1000 {
				sell()
				if i%100 != 0 { // some went at the same instant
					micros += int64(random.ExpFloat64() * 1e5)
					o.now = float64(micros-begin) * 1000
				}
			}
			length, err := c.Do(t.Context(), "STRLEN", l.Key())
			require.NoError(t, err)
			require.LessOrEqual(t, length, int64(69+15*16))
			returned := 0.0
			before := o.level()
			for _, i := range random.Perm(1000)[:300+random.IntN(600)] {
				s := o.sales[i]
				s.used = 0
				s.promise.Cancel()
				returned += float64(s.permits)
				if random.IntN(10) == 0 {
					sell()
					returned -= float64(o.sales[len(o.sales)-1].permits)
				}
			}
			stored, err := l.Stored(t.Context())
			require.NoError(t, err)
			t.Logf("%.0f permits came back: %.1f stored, %.1f by the oracle", returned, stored, o.level())
			require.LessOrEqual(t, stored, o.level()+1e-5)
			require.GreaterOrEqual(t, stored, o.level()-0.25*max(0, returned))
			require.Greater(t, o.level(), before+0.5*returned, "the test shows nothing")
		}
	})
}

// Of what was not given back, any stretch t holds at most capacity + rate*t permits, but for the
// last of them (paid upfront: the first): whatever comes back, whenever, at whatever rate, to
// whichever state of Redis. It counts in time, as rates change: a permit is its interval when it
// was sold.
func TestNothingIsSoldTwice(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		given := 0
		for _, seed := range []uint64{1532, 4513, 18746, 27079, 46843} { // that were too many once
			given += soldOnce(t, c, seed)
		}
		count := c.share(queues(200))
		for seed := range uint64(count) {
			given += soldOnce(t, c, seed)
		}
		t.Logf("%d reservations given back", given)
		require.Greater(t, given, 4*count)
	})
}

// A use is what somebody goes with.
type use struct {
	at, time float64 // when, and how much, in nanoseconds
	permits  int
	life     int // of Redis's key, when it was sold
	promise  reserve.Promise
}

func soldOnce(t *testing.T, c place, seed uint64) (given int) {
	random := rand.New(rand.NewPCG(seed, 2))
	rates := []float64{10}
	if random.IntN(3) == 0 {
		rates = []float64{10, 2, 35}
	}
	burst := []time.Duration{0, 100 * time.Millisecond, 500 * time.Millisecond, 3 * time.Second}[random.IntN(4)]
	upfront := random.IntN(2) == 0
	opts := []reserve.Option{pace.WithBurst(burst)}
	if upfront {
		opts = append(opts, reserve.PayUpfront())
	}
	begin := int64(1_790_000_000_000_000)
	micros := begin
	var clients []*shared.Limiter
	for range 1 + random.IntN(3) {
		clients = append(clients, newShared(t, c, fmt.Sprint("twice ", seed), reserve.Must(pace.Bursty(10, opts...)), shared.FakeTime(&micros)))
	}
	life, largest, small := 0, 1+random.IntN(6), true
	hold := 0.0
	var uses, held []*use
	for range 100 {
		l := clients[random.IntN(len(clients))]
		now := float64(micros-begin) * 1000
		switch random.IntN(10) {
		case 0, 1, 2, 3:
			n := 1 + random.IntN(largest)
			sale, err := l.Sell(n, math.MaxInt64)
			require.NoError(t, err)
			u := &use{now + float64(sale.Wait), float64(n) * 1e9 / l.Rate(), n, life, sale.Promise()}
			require.GreaterOrEqual(t, u.at, hold-2, "seed %d: promised within a pause", seed)
			small = small && u.time <= float64(burst)
			uses, held = append(uses, u), append(held, u)
		case 4, 5:
			micros += int64(random.ExpFloat64() * 2e5)
		case 6:
			switch random.IntN(20) {
			case 0:
				_, err := c.Do(t.Context(), "DEL", l.Key())
				require.NoError(t, err)
				life, hold = life+1, 0
				micros++
			case 1:
				d := int64(random.ExpFloat64() * 5e8)
				require.NoError(t, l.Pause(d))
				hold = max(hold, now+float64(d))
			case 2:
				require.NoError(t, l.Pause(0))
				hold = 0
			case 3, 4, 5:
				require.NoError(t, l.SetRate(t.Context(), rates[random.IntN(len(rates))]))
			}
		default:
			if len(held) == 0 {
				continue
			}
			i := random.IntN(len(held)) // any, early or late
			if random.IntN(2) == 0 {
				i = max(0, len(held)-1-random.IntN(4))
			}
			u := held[i]
			held = slices.Delete(held, i, i+1)
			keep := 0
			if random.IntN(3) == 0 {
				keep = random.IntN(u.permits + 2)
			}
			u.promise.Settle(keep)
			if keep < u.permits {
				given++
				if at := now + float64(u.promise.Delay()); at < u.at { // what is left may go sooner
					u.at = at
					uses = append(slices.DeleteFunc(uses, func(of *use) bool { return of == u }), u)
				}
				u.time *= float64(keep) / float64(u.permits)
			}
		}
	}
	uses = slices.DeleteFunc(uses, func(u *use) bool { return u.time == 0 })
	slices.SortStableFunc(uses, func(a, b *use) int {
		return cmp.Or(cmp.Compare(a.life, b.life), cmp.Compare(a.at, b.at))
	})
	for i, first := range uses {
		sum := 0.0
		for _, last := range uses[i:] {
			if last.life != first.life {
				break
			}
			sum += last.time
			most := float64(burst) + last.at - first.at
			what := fmt.Sprintf("seed %d: %v's worth in %v (burst %v, upfront %v, rates %v)",
				seed, time.Duration(sum), time.Duration(last.at-first.at), burst, upfront, rates)
			switch {
			case !upfront:
				require.LessOrEqual(t, sum-last.time, most+1000, what)
			case small: // none was larger than the store
				require.LessOrEqual(t, sum, most+1000, what)
			default:
				require.LessOrEqual(t, sum-first.time, most+1000, what)
			}
		}
	}
	return given
}
