package calendar

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/internal/smooth"
)

// A naive is the rule, recomputed from scratch: at each moment at which anything can change, the first request goes if
// what was used of the period leaves room for it.
type naive struct {
	quota    int64
	periodOf func(t int64) span
	all      []*asked
}

type asked struct {
	permits int64 // that were not given back
	granted bool
	at      int64
}

// used returns what is used of the period of a time, by what was granted until then.
func (m *naive) used(t int64) int64 {
	by := map[span]int64{}
	var spans []span
	for _, a := range m.all {
		if s := m.periodOf(a.at); a.granted && a.at <= t {
			if len(spans) == 0 || spans[len(spans)-1] != s {
				spans = append(spans, s)
			}
			by[s] += a.permits
		}
	}
	if len(spans) == 0 {
		return 0
	}
	over := int64(0)
	for s := spans[0]; ; s = m.periodOf(s.end) {
		over += by[s]
		if t < s.end {
			return over
		}
		over = max(0, over-m.quota)
	}
}

// run grants what may go from one time to another.
func (m *naive) run(from, to int64) {
	for _, a := range m.all {
		if a.granted || a.permits == 0 {
			continue
		}
		t := from
		for {
			if u := m.used(t); u+a.permits <= m.quota || u == 0 {
				break
			}
			t = m.periodOf(t).end
		}
		if t > to {
			return
		}
		a.granted, a.at, from = true, t, t
	}
}

// copy is for looking ahead.
func (m *naive) copy() *naive {
	c := &naive{quota: m.quota, periodOf: m.periodOf}
	for _, a := range m.all {
		b := *a
		c.all = append(c.all, &b)
	}
	return c
}

// queues returns how many random queues a test runs: 200, or as many as PACE_QUEUES says.
func queues(t *testing.T) int {
	if n := os.Getenv("PACE_QUEUES"); n != "" {
		runs, err := strconv.Atoi(n)
		require.NoError(t, err)
		return runs
	}
	return 200 / min(4, limitertest.Slower)
}

// Random queues, give-backs included, on the days around changes of the clocks: each is granted when the naive rule
// says, and no period holds more than its quota.
func TestQueuesAgainstTheNaiveRule(t *testing.T) {
	for run := range uint64(queues(t)) {
		random := rand.New(rand.NewPCG(run, 1))
		loc := load(t, zones[random.IntN(len(zones))])
		start := time.Date(2020+random.IntN(16), time.Month(1+random.IntN(12)), 1+random.IntN(28), random.IntN(24), 0, 0, 0, time.UTC)
		if c := changes(loc); len(c) > 0 {
			start = c[random.IntN(len(c))].Add(time.Duration(random.IntN(48)-40) * time.Hour)
		}
		per := []Period{Daily(loc, 0), Daily(loc, 90*time.Minute), Weekly(loc, 3, 0), Every(7 * time.Hour)}[random.IntN(4)]
		quota := int64(1 + random.IntN(10))
		epoch := start.UnixNano()
		model := &naive{quota: quota, periodOf: per.around}
		r := &rule{rate: 1, quota: quota, period: per, spread: math.Inf(1)}
		l := newLedger(r, 0, func(now int64) time.Time { return start.Add(time.Duration(now)) })
		var slots []smooth.Slot
		now := int64(0)
		for range 40 {
			then := now
			now += int64(random.ExpFloat64() * float64(5*time.Hour))
			model.run(epoch+then, epoch+now)
			switch k := random.IntN(10); {
			case k < 6:
				n := 1 + random.IntN(int(quota))
				if random.IntN(10) == 0 {
					n += random.IntN(20)
				}
				slot, ready, ok := l.Reserve(now, n, never)
				require.True(t, ok)
				slots = append(slots, slot)
				model.all = append(model.all, &asked{permits: int64(n)})
				ahead := model.copy()
				ahead.run(epoch+now, math.MaxInt64)
				require.Equal(t, ahead.all[len(ahead.all)-1].at-epoch, ready, "run %d: %v, %d", run, per, quota)
			case k < 9 && len(slots) > 0:
				i := random.IntN(len(slots))
				a := model.all[i]
				if slots[i].Permits == 0 {
					continue
				}
				over := a.granted && per.around(a.at) != per.around(epoch+now)
				if over && a.permits > quota {
					continue // see TestLarger
				}
				kept := random.IntN(int(a.permits))
				l.Return(now, slots[i], kept)
				if !over { // else it is worth nothing
					a.permits = int64(kept)
				}
				slots[i].Permits = 0 // once
			default:
				if l.Take(now, 1) {
					model.all = append(model.all, &asked{permits: 1})
					slots = append(slots, smooth.Slot{Number: l.last, Permits: 1})
					model.run(epoch+now, epoch+now)
					require.True(t, model.all[len(model.all)-1].granted)
				} else {
					try := model.copy()
					try.all = append(try.all, &asked{permits: 1})
					try.run(epoch+now, epoch+now)
					require.False(t, try.all[len(try.all)-1].granted, "run %d", run)
				}
			}
			model.run(epoch+now, epoch+now)
			ahead := model.copy()
			ahead.run(epoch+now, math.MaxInt64)
			for i, a := range ahead.all {
				if model.all[i].granted || a.permits == 0 {
					continue
				}
				ready, known := l.Ready(now, slots[i].Number)
				require.True(t, known)
				require.Equal(t, a.at-epoch, ready, "run %d, request %d", run, i)
			}
		}
	}
}

// newTest returns a ledger that begins at a time of 2026-11-22 UTC, on a wall clock that a test can set.
func newTest(n int64, p Period, hour int, change ...func(*rule)) (l *ledger, wall *time.Time) {
	wall = new(time.Time)
	*wall = time.Date(2026, 11, 22, hour, 0, 0, 0, time.UTC)
	r := &rule{rate: float64(n) / p.nominal().Seconds(), quota: n, period: p, spread: math.Inf(1)}
	for _, f := range change {
		f(r)
	}
	return newLedger(r, 0, func(now int64) time.Time { return wall.Add(time.Duration(now)) }), wall
}

func book(l *ledger, at time.Duration, n int) (smooth.Slot, time.Duration) {
	slot, ready, _ := l.Reserve(int64(at), n, never)
	return slot, time.Duration(ready)
}

const h = time.Hour

// A request larger than the quota takes several periods, and gives back what is still to come of it.
func TestLarger(t *testing.T) {
	l, _ := newTest(10, Every(h), 10)
	_, at := book(l, 0, 1)
	require.Zero(t, at)
	large, at := book(l, 0, 25)
	require.Equal(t, h, at, "the first hour of which nothing is used")
	_, at = book(l, 0, 5)
	require.Equal(t, 3*h, at)
	_, at = book(l, 0, 1)
	require.Equal(t, 4*h, at)

	require.False(t, l.Take(int64(2*h), 1))
	l.Return(int64(2*h+h/2), large, 12) // of 10, 10 and 5: the last 5, and 8 of the second hour's
	require.Equal(t, float64(10-2-5-1), l.Stored(int64(2*h+h/2)), "the requests that waited went at once")

	l, _ = newTest(10, Every(time.Nanosecond), 10)
	l.Charge(0, math.MaxInt) // no loop over 30 years' periods
	require.Equal(t, int64(math.MaxInt/10), l.NextFree(0))
	l, _ = newTest(1, Daily(time.UTC, 0), 10)
	l.Charge(0, math.MaxInt)
	require.Equal(t, int64(never), l.NextFree(0))
}

func TestFromFirst(t *testing.T) {
	l, _ := newTest(2, FromFirst(5*h), 10)
	require.Equal(t, 2.0, l.Stored(int64(30*h)))
	slot, at := book(l, 31*h, 1)
	require.Equal(t, 31*h, at)
	l.Return(int64(32*h), slot, 0) // it was not made, so the hours have not begun
	_, at = book(l, 33*h, 2)
	require.Equal(t, 33*h, at)
	_, at = book(l, 34*h, 1)
	require.Equal(t, 38*h, at)
	_, at = book(l, 34*h, 2)
	require.Equal(t, 43*h, at)
	require.True(t, l.Take(int64(60*h), 2))
	require.False(t, l.Take(int64(65*h)-1, 1))
	require.True(t, l.Take(int64(65*h), 1))
}

// In each hundredth of the period, two calls at most from even; and what is not used early is used later.
func TestSpread(t *testing.T) {
	l, _ := newTest(1000, Daily(time.UTC, 0), 0, func(r *rule) { r.spread = 1 })
	var in [100]int
	for now := int64(0); now < int64(24*h); now += int64(time.Second) {
		if l.Take(now, 1) {
			in[now*100/int64(24*h)]++
		}
	}
	for i, n := range in {
		require.InDelta(t, 10, n, 2, "hundredth %d", i)
	}
	l, _ = newTest(1000, Daily(time.UTC, 0), 12, func(r *rule) { r.spread = 4 }) // half the day is over
	_, at := book(l, 0, 1)
	require.Zero(t, at)
	newest, at := book(l, 0, 100)
	require.Equal(t, 12*h/4000, at)
	next, after := book(l, 0, 1)
	require.Equal(t, (at + time.Duration(math.Ceil(100*float64(12*h-at)/(999*4)))).Truncate(time.Microsecond), after.Truncate(time.Microsecond))
	l.Return(0, newest, 0)
	ready, known := l.Ready(0, next.Number)
	require.True(t, known)
	require.Equal(t, at, time.Duration(ready))
}

// What is charged moves the pace on.
func TestSpreadAndCharges(t *testing.T) {
	l, _ := newTest(100, Every(10*time.Second), 0, func(r *rule) { r.spread = 1 })
	_, at := book(l, 0, 50)
	require.Zero(t, at)
	require.Equal(t, int64(5*time.Second), l.NextFree(0))
	l.Charge(0, 1)
	require.InDelta(t, 5100*time.Millisecond, l.NextFree(0), 2e6)

	l, _ = newTest(800, Every(800*time.Second), 0, func(r *rule) { r.spread = 1 })
	used := 0
	for now := int64(0); now < int64(100*time.Second); now += int64(100 * time.Millisecond) {
		if l.Take(now, 10) {
			l.Charge(now, 1)
			used += 11
		}
	}
	require.InDelta(t, 110, used, 11)
}

func TestMargin(t *testing.T) {
	l, _ := newTest(10, Daily(time.UTC, 0), 23, func(r *rule) { r.margin = int64(10 * time.Minute) })
	require.True(t, l.Take(int64(50*time.Minute)-1, 1))
	require.False(t, l.Take(int64(50*time.Minute), 1))
	_, at := book(l, 55*time.Minute, 1)
	require.Equal(t, 70*time.Minute, at)
	l, _ = newTest(1, FromFirst(h), 0, func(r *rule) { r.margin = int64(time.Minute) })
	require.True(t, l.Take(0, 1))
	require.Equal(t, int64(61*time.Minute), l.NextFree(0))
}

// The wall clock is set: back, and nothing is granted twice or waits for it; forward, and the day begins.
func TestClockIsSet(t *testing.T) {
	l, wall := newTest(3, Daily(time.UTC, 0), 23)
	require.True(t, l.Take(int64(h+h/2), 1)) // at 0:30
	*wall = wall.Add(-h)                     // 23:30
	require.True(t, l.Take(int64(h+h/2), 1), "what is left")
	slot, at := book(l, h+h/2, 2)
	require.Equal(t, 26*h, at, "a day later, and not at the midnight that comes twice")
	*wall = wall.Add(23 * h) // the laptop slept
	require.Equal(t, int64(3*h), func() int64 { r, _ := l.Ready(int64(h+h/2), slot.Number); return r }())
	l, wall = newTest(100, Daily(time.UTC, 0), 12, func(r *rule) { r.spread = 1 })
	require.True(t, l.Take(0, 1))
	next := l.NextFree(0)
	*wall = wall.Add(-h)
	require.Equal(t, next, l.NextFree(0))
}

func TestPause(t *testing.T) {
	l, _ := newTest(2, Every(h), 0)
	_, at := book(l, 0, 2)
	require.Zero(t, at)
	slot, at := book(l, 0, 1)
	require.Equal(t, h, at)
	require.True(t, l.Pause(0, int64(150*time.Minute)))
	require.False(t, l.Pause(0, int64(h)))
	ready, _ := l.Ready(0, slot.Number)
	require.Equal(t, int64(150*time.Minute), ready)
	require.True(t, l.Resume(int64(90*time.Minute)))
	require.False(t, l.Resume(int64(90*time.Minute)))
	require.Equal(t, 1.0, l.Stored(int64(90*time.Minute)))
}

func TestChanges(t *testing.T) {
	l, _ := newTest(2, Every(h), 0)
	require.True(t, l.Take(0, 2))
	a, at := book(l, 0, 2)
	require.Equal(t, h, at)
	b, at := book(l, 0, 2)
	require.Equal(t, 2*h, at)
	times := func(want ...time.Duration) {
		t.Helper()
		for i, slot := range []smooth.Slot{a, b} {
			ready, known := l.Ready(0, slot.Number)
			require.True(t, known)
			require.Equal(t, want[i], time.Duration(ready))
		}
	}
	l.SetRate(0, 1.0/3600)
	times(h, 2*h) // as promised
	_, at = book(l, 0, 1)
	require.Equal(t, 5*h, at, "the two took four hours' quota")
	l.Retime(0, 1.0/3600)
	times(h, 3*h) // each takes two hours
	l.Retime(0, 4.0/3600)
	_, known := l.Ready(0, a.Number)
	require.False(t, known, "it was granted")
	ready, _ := l.Ready(0, b.Number)
	require.Equal(t, int64(h), ready)
	l.SetRate(0, math.Inf(1))
	require.True(t, math.IsInf(l.Rate(), 1))
	require.Equal(t, int64(0), l.NextFree(int64(0)))

	// Another policy: what is used of the hour is used of the day.
	l, _ = newTest(2, Every(h), 10)
	require.True(t, l.Take(0, 2))
	l.change(0, &rule{rate: 1, quota: 3, period: Daily(time.UTC, 0), spread: math.Inf(1)})
	require.Equal(t, 1.0, l.Stored(0))
	require.True(t, l.Take(0, 1))
	require.Equal(t, int64(14*h), l.NextFree(0))
}

// A server says what is left, and when the period ends.
func TestSaid(t *testing.T) {
	l, _ := newTest(100, Daily(time.UTC, 0), 12)
	require.True(t, l.Take(0, 10))
	l.Said(0, 70, int64(12*h+90*time.Second)) // its clock is 90 s behind
	require.Equal(t, 70.0, l.Stored(0))
	l.Said(0, 95, int64(12*h+90*time.Second)) // an older answer
	require.Equal(t, 70.0, l.Stored(0))
	require.True(t, l.Take(0, 70))
	require.Equal(t, int64(12*h+90*time.Second), l.NextFree(0))
	require.True(t, l.Take(int64(13*h), 100))
	require.Equal(t, int64(36*h+90*time.Second), l.NextFree(int64(13*h)))
	l.Said(int64(13*h), 50, int64(13*h+h)) // of another limit
	require.Equal(t, int64(36*h+90*time.Second), l.NextFree(int64(13*h)))

	l, _ = newTest(100, FromFirst(h), 12)
	l.Said(0, 0, int64(20*time.Minute)) // the program was started anew
	require.Equal(t, int64(20*time.Minute), l.NextFree(0))
}

// Nothing goes above the quota in any period, whatever happens: without a model. Charges, what a server or a change of
// the quota takes away, and requests larger than the quota are left out.
func TestNeverAboveTheQuota(t *testing.T) {
	for run := range uint64(queues(t)) {
		random := rand.New(rand.NewPCG(run, 2))
		per := []Period{Daily(time.UTC, h), Every(3 * h), Monthly(time.UTC, 30), FromFirst(5 * h)}[random.IntN(4)]
		quota := 1 + random.IntN(8)
		l, _ := newTest(int64(quota), per, 3, func(r *rule) {
			r.spread = []float64{math.Inf(1), 1, 3}[random.IntN(3)]
			r.margin = int64(random.IntN(2)) * int64(time.Minute)
		})
		type went struct {
			slot smooth.Slot
			at   int64
			done bool
		}
		var all []*went
		now := int64(0)
		for range 60 {
			now += int64(random.ExpFloat64() * float64(per.nominal()) / 5)
			switch k := random.IntN(12); {
			case k < 6:
				slot, ready, _ := l.Reserve(now, 1+random.IntN(quota), never)
				all = append(all, &went{slot: slot, at: ready})
			case k < 9 && len(all) > 0:
				w := all[random.IntN(len(all))]
				_, waits := l.Ready(now, w.slot.Number)
				if !w.done && (waits || per.kind != fromFirst) { // where it has begun a period, that stays
					w.done = true
					kept := random.IntN(w.slot.Permits)
					l.Return(now, w.slot, kept)
					w.slot.Permits = kept
				}
			case k == 9:
				l.Pause(now, now+int64(random.ExpFloat64()*float64(h)))
			case k == 10:
				l.Resume(now)
			}
			for _, w := range all {
				if ready, known := l.Ready(now, w.slot.Number); known {
					w.at = ready
				} else {
					w.at = min(w.at, now) // it was granted, by now
				}
			}
		}
		begin, end, used := int64(0), int64(0), 0
		for _, w := range all { // in order
			if w.slot.Permits == 0 {
				continue
			}
			if at := unix(l.wall(w.at)); at >= end {
				if used = 0; per.kind == fromFirst {
					begin, end = at, at+int64(per.length)
				} else {
					begin, end = per.around(at).begin, per.around(at).end
				}
			} else {
				require.GreaterOrEqual(t, end-at, l.margin)
			}
			used += w.slot.Permits
			require.LessOrEqual(t, used, quota, "run %d, from %v", run, time.Unix(0, begin).UTC())
		}
	}
}
