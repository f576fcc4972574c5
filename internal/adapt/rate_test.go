package adapt

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var unknown = math.Inf(1)

// at is a time in a rate's life.
func at(seconds float64) time.Time {
	return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

// send sends calls at a rate, from one time to another. All are accepted at once.
func send(r *Rate, perSecond, from, to float64) {
	for t := from; t < to; t += 1 / perSecond {
		r.Sent(at(t), 1)
		r.Accepted(at(t), at(t), 1)
	}
}

// follow sends calls as fast as the rate allows to a server that accepts all of them, until a time.
func follow(r *Rate, from, to float64) {
	for t := from; t < to; t += 1 / r.Now() {
		r.Sent(at(t), 1)
		r.Accepted(at(t), at(t), 1)
	}
}

// A ceiling that nothing has proven is left for 0.6 of it, once for all refusals of the same event.
func TestOneCutForAnEvent(t *testing.T) {
	r := New(80)
	send(&r, 80, 0, 0.33)
	require.Equal(t, 80., r.Now())
	require.True(t, r.Refused(at(0.33), at(0.32), at(1.33), false))
	require.InDelta(t, unproven*80, r.Now(), 0.01)
	first := r.Now()
	for range 10_000 { // sent before the cut
		require.False(t, r.Refused(at(0.34), at(0.325), at(1.34), false))
	}
	require.Equal(t, first, r.Now())
}

// An event takes a step of the rate, and a period gives it back; further ones after an acceptance each take one.
func TestStep(t *testing.T) {
	r := found(50)
	before := r.Now()
	require.True(t, r.Refused(at(1000), at(1000), at(1000), false))
	require.InEpsilon(t, before*math.Exp(-step), r.Now(), 0.01)
	end := 1000 + r.period()
	follow(&r, 1000, end)
	require.InEpsilon(t, before, r.Now(), 0.02)
	for i := range 5 {
		now := end + float64(i)*0.05
		r.Accepted(at(now), at(now), 1)
		require.True(t, r.Refused(at(now+0.01), at(now+0.01), at(now+0.01), false))
	}
	require.InEpsilon(t, before*math.Exp(-5*step), r.Now(), 0.03)
}

// found is a rate that was found a while before 1000 s.
func found(rate float64) Rate {
	r := New(100 * rate)
	r.rate, r.used, r.last, r.at, r.proven = rate, rate, at(989), at(980), true
	r.Sent(at(989), 1)
	for t := 990.; t < 1000; t += 1 / rate {
		r.Accepted(at(t), at(t), 1)
	}
	r.rate, r.used, r.grown = rate, rate, 0
	return r
}

// While nothing that was sent after a cut is accepted, refusals say little: every third halves the rate until
// something is accepted. A server that is not able to answer says nothing at all of the rate.
func TestRefusalsInARow(t *testing.T) {
	for _, unable := range []bool{true, false} {
		r := found(50)
		r.Refused(at(1000), at(1000), at(1000), unable)
		cut := r.Now()
		for i := range 10_000 { // an outage of three hours
			r.Refused(at(1001+float64(i)), at(1001+float64(i)), at(1001+float64(i)), unable)
		}
		require.Equal(t, leastBlind, r.Now())
		r.right = 0
		r.Accepted(at(12000), at(11999), 1)
		if unable {
			require.InEpsilon(t, cut, r.Now(), 0.01)
		} else {
			require.InEpsilon(t, cut*math.Exp(-PerStop*inRow*step), r.Now(), 0.01)
		}
	}
}

// Where an event is overdue the limit has moved: the rate grows ever faster.
func TestOverdue(t *testing.T) {
	r := found(50)
	r.Refused(at(1000), at(1000), at(1000), false)
	low := r.Now()
	follow(&r, 1000, 1000+overdue*r.period())
	require.InEpsilon(t, low*math.Exp(overdue*step), r.Now(), 0.03)
	follow(&r, 1000+overdue*r.period(), 1000+8*r.period())
	require.Greater(t, r.Now(), 10*low)
}

// The slowest rate, which no limit holds any more and no penalty keeps, is back within half an hour.
func TestSlowest(t *testing.T) {
	r := found(1)
	r.rate, r.used = leastRate, leastRate
	r.Refused(at(1000), at(1000), at(1001), false)
	follow(&r, 1001, 2800)
	require.Greater(t, r.Now(), 1.)

	r = found(1)
	r.rate, r.used, r.penalty = leastRate, leastRate, 600
	follow(&r, 1000, 2800)
	require.Less(t, r.Now(), 2*leastRate, "a penalty is risked once in its period")
}

// A program that called nobody for an hour has learned nothing in it.
func TestIdleTimeIsNoUse(t *testing.T) {
	for calls := range 50 { // the latest stretch of the meter has few calls, or many
		r := found(50)
		r.ceiling = unknown
		r.Refused(at(1000), at(1000), at(1000), false)
		now := 1005 + float64(calls)*0.02
		follow(&r, 1000, now)
		before := r.Now()
		r.Accepted(at(now+3600), at(now+3600), 1)
		r.Accepted(at(now+3600.02), at(now+3600.02), 1)
		require.InEpsilon(t, before, r.Now(), 0.02)
	}
}

// A stop that follows another one within 25 of its lengths is a penalty for the rate, and risked once in that time.
func TestPenalty(t *testing.T) {
	r := found(5)
	r.Refused(at(1000), at(1000), at(1030), false)
	require.Equal(t, float64(PerStop), r.period())
	follow(&r, 1030, 1060)
	before := r.Now()
	r.Refused(at(1060), at(1060), at(1090), false)
	require.Equal(t, 30.*PerStop, r.period())
	require.InEpsilon(t, before*math.Exp(-step), r.Now(), 0.02)
	low := r.Now()
	follow(&r, 1090, 1090+15*PerStop)
	require.InEpsilon(t, low*math.Exp(step/2), r.Now(), 0.02)
}

// A rate that was accepted at the ceiling for long is back after a stop of t within min(t, 25 s); once: the next refusal is about it.
func TestPardon(t *testing.T) {
	for _, stop := range []float64{1, 10, 60} {
		r := New(50)
		send(&r, 50, 0, 20)
		r.Refused(at(20), at(20), at(20+stop), false)
		require.Less(t, r.Now(), 50.)
		follow(&r, 20+stop, 20+stop+min(stop, PerStop)+1)
		require.Equal(t, 50., r.Now(), "%v", stop)
	}
}

// A neighbour that comes once leaves no trace: it takes all but one or seven calls of two or three windows of 10 s.
func TestNeighbour(t *testing.T) {
	for _, windows := range []int{2, 3} {
		for _, leaves := range []int{1, 7, 20} {
			r, now := New(50), 50.
			send(&r, 50, 0, now)
			for range windows {
				send(&r, 50, now, now+float64(leaves)/50-0.01)
				now += float64(leaves) / 50
				end := math.Floor(now/10)*10 + 10
				r.Refused(at(now), at(now), at(end), false)
				now = end
			}
			follow(&r, now, now+30)
			require.InDelta(t, 50, r.Now(), 2, "%d of %d", leaves, windows)
		}
	}
}

// The rate is never raised above twice what is answered, and never falls below the floor.
func TestBounds(t *testing.T) {
	r := New(1000)
	r.Refused(at(0), at(-1), at(0), false)
	cut := r.Now()
	send(&r, 5, 0, 100) // far less than allowed: no reason to allow more
	require.InEpsilon(t, cut, r.Now(), 0.02)
	for _, ceiling := range []float64{0.1, 1e-9, 1e12} {
		r = New(ceiling)
		for i := range 100_000 {
			now := at(float64(20 * i))
			r.Refused(now, now, now, false)
			r.Accepted(now, now, 1)
			require.Positive(t, r.Now())
			require.LessOrEqual(t, r.Now(), ceiling)
		}
		require.Equal(t, min(ceiling, leastRate), r.Now())
	}
}

// What the server says holds at once, less the margin, but never above the ceiling; old news do not count.
func TestSaid(t *testing.T) {
	r := New(80)
	r.Said(at(1), at(0.9), 50, 0, false)
	require.InDelta(t, 49, r.Now(), 1e-9)
	r.Said(at(2), at(0.8), 10, 0, false)
	require.InDelta(t, 49, r.Now(), 1e-9, "sent before")
	r.Said(at(2), at(1.9), 0.1, 0, false)
	require.InDelta(t, 0.098, r.Now(), 1e-9)
	r.Said(at(3), at(2.9), 1000, 0, false)
	require.Equal(t, 80., r.Now())

	r = New(unknown)
	require.True(t, r.Unknown())
	r.Said(at(1), at(0.9), 50, 0, false)
	require.InDelta(t, 49, r.Now(), 1e-9)
	r.Refused(at(2), at(1.9), at(2), false)
	require.InDelta(t, 49*math.Exp(-step), r.Now(), 0.1, "a bucket that was empty, and not another rate")
	send(&r, 100, 2, 30)
	require.InDelta(t, 49, r.Now(), 1e-9)

	r = New(unknown) // a server that speaks late
	r.Accepted(at(1), at(0.9), 1)
	require.Equal(t, firstRate, r.Now())
	r.Said(at(2), at(1.9), 50, 0, false)
	require.InDelta(t, 49, r.Now(), 1e-9)

	r = New(80)
	r.Short(at(3), at(2.9), 1) // nothing left for a moment: a little less, once
	r.Short(at(3.1), at(3.05), 1)
	require.InDelta(t, 80*math.Exp(-step), r.Now(), 0.1)
	r = New(unknown)
	r.Short(at(1), at(0.9), 1)
	require.Equal(t, firstRate, r.Now())
}

// What a server said once does not hold for good.
func TestForgets(t *testing.T) {
	for _, ceiling := range []float64{80, unknown} {
		r := New(ceiling)
		r.Said(at(1), at(0.9), 1./600, 0, false) // 1 left, for 10 minutes
		r.Accepted(at(1), at(0.9), 1)
		require.Less(t, r.Now(), 0.002)
		r.Accepted(at(600), at(599), 1)
		require.Less(t, r.Now(), 0.002)
		send(&r, 1, 613, 650)
		require.GreaterOrEqual(t, r.Now(), 1., "%v", ceiling)
		require.False(t, r.Unknown(), "or all who queue would go at once")
	}
}

// What is left of a window says nothing of the next one, in which the server may be silent until little is left.
func TestForgetsAWindow(t *testing.T) {
	for _, ceiling := range []float64{80, unknown} {
		r := New(ceiling)
		r.Said(at(1), at(0.9), 0.1, 50*time.Second, false) // 5 left, for 50 s
		r.Accepted(at(1), at(0.9), 1)
		r.Accepted(at(50), at(49.9), 1)
		require.InDelta(t, 0.098, r.Now(), 1e-9)
		r.Accepted(at(52), at(51.9), 1)
		require.GreaterOrEqual(t, r.Now(), firstRate)
		require.False(t, r.Unknown())
	}
}

// A part of what is left is at least one call until the end. Before, that call went long after it.
func TestPartOfLittle(t *testing.T) {
	r := New(unknown)
	r.fair.part = 0.5
	r.Said(at(1), at(0.9), 1.2/300, 300*time.Second, true)
	require.InDelta(t, 1./300, r.Now(), 1e-9)
	r.Said(at(2), at(1.9), 30./300, 300*time.Second, true)
	require.InDelta(t, 0.5*margin*30/300, r.Now(), 1e-9)
}

// Without a word from the server the rate doubles until the first refusal, which leaves less than half of it.
func TestSearch(t *testing.T) {
	r := New(unknown)
	r.Sent(at(-0.01), 1)
	r.Accepted(at(0), at(-0.01), 1)
	require.Equal(t, 16., r.Now())
	follow(&r, 0.05, 0.65)
	require.InDelta(t, 64, r.Now(), 16)
	before := r.Now()
	r.Refused(at(0.65), at(0.65), at(1.65), false)
	require.InDelta(t, 0.42*before, r.Now(), 2)
	r = New(unknown)
	r.Refused(at(0), at(-1), at(1), false) // the probe itself
	require.False(t, r.Unknown())
	require.Less(t, r.Now(), 16.)
}

// All is in permits: calls of 80 each at 4000/s are like calls of 1 at 50/s.
func TestPermits(t *testing.T) {
	one, many := New(80), New(80*80)
	for i := range 400 {
		now := at(float64(i) * 0.02)
		one.Sent(now, 1)
		many.Sent(now, 80)
		if i%100 == 30 {
			one.Refused(now, now, now.Add(100*time.Millisecond), false)
			many.Refused(now, now, now.Add(100*time.Millisecond), false)
		} else {
			one.Accepted(now, now, 1)
			many.Accepted(now, now, 80)
		}
		require.InDelta(t, one.Now(), many.Now()/80, 1e-6)
	}
	require.Less(t, one.Now(), 60.)
}

// A response costs less than a microsecond, also where a third of the calls is refused at any rate, which is believed.
func BenchmarkResponse(b *testing.B) {
	for _, refused := range []int{0, 3} {
		b.Run(fmt.Sprintf("one of %d refused", refused), func(b *testing.B) {
			r, now := New(100), at(0)
			b.ReportAllocs()
			for i := range b.N {
				now = now.Add(time.Duration(float64(time.Second) / r.Now()))
				r.Sent(now, 1)
				if refused > 0 && i%refused == 0 {
					r.Refused(now, now, now, true)
				} else {
					r.Accepted(now, now, 1)
				}
			}
		})
	}
}
