package adapt

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var unknown = math.Inf(1)

// at is a time in a rate's life.
func at(seconds float64) time.Time {
	return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

// send has calls sent at a rate, from one time to another, all accepted at once.
func send(r *Rate, perSecond, from, to float64) {
	for t := from; t < to; t += 1 / perSecond {
		r.Sent(at(t), 1)
		r.Accepted(at(t), at(t), 1)
	}
}

// bucket has calls sent as fast as the rate allows to a server that allows so many a second, from one time to
// another, and returns which share it refused.
func bucket(r *Rate, limit, from, to float64) (refused float64) {
	level, calls := limit/5, 0.
	for t := from; t < to; {
		step := 1 / r.Now()
		t += step
		r.Sent(at(t), 1)
		calls++
		if level = min(limit/5, level+step*limit); level >= 1 {
			level--
			r.Accepted(at(t), at(t), 1)
		} else {
			refused++
			r.Refused(at(t), at(t), at(t))
		}
	}
	return refused / calls
}

// A ceiling that nothing has proven is left for 0.6 of it, once for all refusals of the same event.
func TestOneCutForAnEvent(t *testing.T) {
	r := New(80)
	send(&r, 80, 0, 0.33)
	require.Equal(t, 80., r.Now())
	require.True(t, r.Refused(at(0.33), at(0.32), at(1.33)))
	require.InDelta(t, 0.6*80, r.Now(), 2)
	first := r.Now()
	for range 10_000 { // sent before the cut
		require.False(t, r.Refused(at(0.34), at(0.325), at(1.34)))
	}
	require.Equal(t, first, r.Now())
	send(&r, 45, 1.33, 5)
	require.InDelta(t, 0.62*80, r.Now(), 2, "back at the estimate")
}

// While nothing that was sent after a cut is accepted, refusals say nothing new: every third halves
// the rate, until something is.
func TestRefusalsInARow(t *testing.T) {
	r := New(80)
	require.True(t, r.Refused(at(0), at(-0.1), at(0)))
	low := r.Now()
	require.InDelta(t, 0.65*80, low, 1e-9)
	for i, want := range []float64{low, low, low / 2, low / 2, low / 2, low / 4} {
		require.False(t, r.Refused(at(0.1*float64(i+1)), at(0.1*float64(i+1)-0.01), at(0)))
		require.InDelta(t, want, r.Now(), 1e-9)
	}
	r.Accepted(at(1), at(0.9), 1)
	require.InDelta(t, low, r.Now(), 5, "as before, and growing")
	require.True(t, r.Refused(at(2), at(1.9), at(2)), "another event")
	require.Less(t, r.Now(), low)
	low = r.Now()
	for i := range 10_000 { // an outage of three hours
		require.False(t, r.Refused(at(3+float64(i)), at(2.9+float64(i)), at(0)))
		require.GreaterOrEqual(t, r.Now(), leastBlind)
	}
	r.Accepted(at(11_000), at(10_999.9), 1)
	require.GreaterOrEqual(t, r.Now(), low, "it said nothing of the rate")
}

// What a bucket has allowed is what it allows: the longer it lasted, the gentler the cut.
func TestEstimateIsWhatWasAccepted(t *testing.T) {
	r := New(80)
	r.Refused(at(0), at(-0.1), at(0))
	send(&r, 50, 0.01, 2.5)
	require.True(t, r.Refused(at(2.5), at(2.49), at(2.5)))
	require.InDelta(t, 50*0.97*0.96, r.Now(), 2)
	send(&r, 60, 2.51, 4.5)
	require.InDelta(t, 50, r.Now(), 2)
}

// A limit that has moved is followed: beyond the period the rate doubles every second.
func TestFollows(t *testing.T) {
	r := New(1000)
	r.Refused(at(0), at(-0.1), at(0))
	r.Refused(at(0.5), at(0.4), at(0.5))
	bucket(&r, 30, 1, 12)
	fallen := r.Now()
	require.Less(t, fallen, 40.)
	grown := 13.
	for grown < 60 && r.Now() < 900 {
		send(&r, r.Now(), grown, grown+0.1)
		grown += 0.1
	}
	require.Less(t, grown, 45., "%v", r.Now())
	send(&r, 1000, 60, 90)
	require.Equal(t, 1000., r.Now(), "never above the ceiling")
}

// Where refusals bring stops, another one is risked only after many times as long.
func TestStopsMakePatient(t *testing.T) {
	risen := func(stop float64) (seconds float64) {
		r := New(100)
		r.Refused(at(0), at(-0.1), at(stop))
		estimate := r.estimate
		for seconds = stop; r.Now() < 1.2*estimate && seconds < 1000; seconds += 0.1 {
			send(&r, r.Now(), seconds, seconds+0.1)
		}
		return seconds - stop
	}
	require.Less(t, risen(0), 6.)
	require.Greater(t, risen(1), 20.)
	require.InDelta(t, 30., risen(10), 2, "but not for longer")
	require.InDelta(t, 30., risen(300), 2)
}

// The more calls an event wasted, the longer until another one is risked: until they are a hundredth of all.
func TestWasteMakesPatient(t *testing.T) {
	risen := func(refused int) (seconds float64) {
		r := New(100)
		for range refused {
			r.Refused(at(0), at(-0.1), at(0))
		}
		estimate := r.estimate
		for r.Now() < 1.2*estimate && seconds < 1000 {
			send(&r, r.Now(), seconds, seconds+0.1)
			seconds += 0.1
		}
		return seconds
	}
	require.Less(t, risen(1), 6.)
	require.InDelta(t, 8/0.78, risen(8), 2)
	require.InDelta(t, 16/0.78, risen(16), 3)
	require.Less(t, risen(10_000), 40., "but not without end")
}

// One cut follows a limit that fell while calls were stopped: the sooner the refusal, the deeper; and
// a gap in the calls is no reason for a deeper one.
func TestCutByHowLongItLasted(t *testing.T) {
	cut := func(lasted, perSecond float64) float64 {
		r := New(80)
		r.Refused(at(0), at(-0.1), at(1))
		send(&r, perSecond, 1, 1+lasted)
		before := r.Now()
		for range 2 { // one alone may be chance
			r.Refused(at(1+lasted), at(1+lasted), at(2+lasted))
		}
		return r.Now() / before
	}
	require.InDelta(t, 0.54, cut(0.3, 48), 0.03)
	require.InDelta(t, 0.78, cut(1, 48), 0.03)
	require.Greater(t, cut(3, 48), 0.88)
	require.Greater(t, cut(1, 2), 0.2)
}

// The rate is never raised above twice what is used, and never falls below the floor.
func TestBounds(t *testing.T) {
	r := New(1000)
	r.Refused(at(0), at(-1), at(0))
	cut := r.Now()
	send(&r, 5, 0, 100) // far less than allowed: no reason to allow more
	require.Equal(t, cut, r.Now())
	for i := range 1000 {
		r.Refused(at(float64(200+20*i)), at(float64(200+20*i)), at(float64(200+20*i)))
		require.GreaterOrEqual(t, r.Now(), leastBlind)
	}
	require.Equal(t, leastBlind, r.Now())
	for _, ceiling := range []float64{0.1, 1e-9, 1e12} {
		r = New(ceiling)
		for i := range 100 {
			r.Refused(at(float64(20*i)), at(float64(20*i)), at(float64(20*i)))
			require.Positive(t, r.Now())
			require.LessOrEqual(t, r.Now(), ceiling)
		}
	}
}

// What the server says holds at once, less the margin, but never above the ceiling; old news do not count.
func TestSaid(t *testing.T) {
	r := New(80)
	r.Said(at(1), at(0.9), 50)
	require.InDelta(t, 49, r.Now(), 1e-9)
	r.Said(at(2), at(0.8), 10)
	require.InDelta(t, 49, r.Now(), 1e-9, "sent before")
	r.Said(at(2), at(1.9), 0.1)
	require.InDelta(t, 0.098, r.Now(), 1e-9)
	r.Said(at(3), at(2.9), 1000)
	require.Equal(t, 80., r.Now())

	r = New(unknown)
	require.True(t, r.Unknown())
	r.Said(at(1), at(0.9), 50)
	require.InDelta(t, 49, r.Now(), 1e-9)
	r.Refused(at(2), at(1.9), at(2))
	require.InDelta(t, 45.57, r.Now(), 1e-9, "a bucket that was empty, and not another rate")
	send(&r, 100, 2, 30)
	require.InDelta(t, 49, r.Now(), 1e-9)

	r = New(unknown) // a server that speaks late
	r.Accepted(at(1), at(0.9), 1)
	require.Equal(t, firstRate, r.Now())
	r.Said(at(2), at(1.9), 50)
	require.InDelta(t, 49, r.Now(), 1e-9)

	r = New(80)
	r.Short(at(1), at(0.9), 1) // nothing left for a moment: a little less, once
	r.Short(at(1.1), at(1.05), 1)
	require.InDelta(t, 72, r.Now(), 1.5)
	r = New(unknown)
	r.Short(at(1), at(0.9), 1)
	require.Equal(t, firstRate, r.Now())
}

// What a server said once does not hold for good.
func TestForgets(t *testing.T) {
	for _, ceiling := range []float64{80, unknown} {
		r := New(ceiling)
		r.Said(at(1), at(0.9), 1./600) // 1 left, for 10 minutes
		r.Accepted(at(1), at(0.9), 1)
		require.Less(t, r.Now(), 0.002)
		r.Accepted(at(600), at(599), 1)
		require.Less(t, r.Now(), 0.002)
		send(&r, 1, 613, 650)
		require.GreaterOrEqual(t, r.Now(), 1., "%v", ceiling)
		require.False(t, r.Unknown(), "or all who queue would go at once")
	}
}

// Without a word from the server the rate doubles until the first refusal, which leaves less than half of it.
func TestSearch(t *testing.T) {
	r := New(unknown)
	r.Sent(at(-0.01), 1)
	r.Accepted(at(0), at(-0.01), 1)
	require.Equal(t, 16., r.Now())
	for now := 0.; now < 0.6; now += 0.05 {
		send(&r, r.Now(), now, now+0.05)
	}
	require.InDelta(t, 64, r.Now(), 8)
	before := r.Now()
	r.Refused(at(0.6), at(0.6), at(1.6))
	require.InDelta(t, 0.42*before, r.Now(), 2)
	r = New(unknown)
	r.Refused(at(0), at(-1), at(1)) // the probe itself
	require.InDelta(t, 0.6*16, r.Now(), 0.1)
}

// All is in permits: calls of 80 each at 4000/s are like calls of 1 at 50/s.
func TestPermits(t *testing.T) {
	one, many := New(80), New(80*80)
	for i := range 400 {
		now := at(float64(i) * 0.02)
		one.Sent(now, 1)
		many.Sent(now, 80)
		if i%100 == 30 {
			one.Refused(now, now, now.Add(100*time.Millisecond))
			many.Refused(now, now, now.Add(100*time.Millisecond))
		} else {
			one.Accepted(now, now, 1)
			many.Accepted(now, now, 80)
		}
		require.InDelta(t, one.Now(), many.Now()/80, 1e-6)
	}
	require.Less(t, one.Now(), 60.)
}

// A refusal of which no call was counted does not spoil the measurement.
func TestMeterSkipsNothing(t *testing.T) {
	r := New(80)
	r.Refused(at(1), at(0.9), at(2)) // sent before the rate began anew
	for i := range 20 {
		r.Sent(at(3+float64(i)*0.02), 1)
		r.Accepted(at(3+float64(i)*0.02), at(3+float64(i)*0.02), 1)
	}
	r.Refused(at(3.4), at(3.3), at(3.4))
	require.Greater(t, r.Now(), 20.)
}

// chanceOf has a client send calls for so many seconds, as fast as the rate allows, of which a share
// is refused at any rate, and more when the rate is above the limit. It returns what was accepted per
// second, and whether chance is known in the end.
func chanceOf(r *Rate, limit, share, seconds float64, stop time.Duration, seed uint64) (accepted float64, known bool) {
	random := rand.New(rand.NewPCG(seed, 2))
	now, level := at(0), limit/5
	for began := now; now.Sub(began).Seconds() < seconds; {
		step := 1 / r.Now()
		now = now.Add(time.Duration(step * float64(time.Second)))
		level = min(limit/5, level+step*limit)
		r.Sent(now, 1)
		if random.Float64() >= share && level >= 1 {
			level--
			accepted++
			r.Accepted(now, now, 1)
		} else if chance := r.Chance(now); r.Refused(now, now, now.Add(stop)) && !chance {
			level = min(limit/5, level+stop.Seconds()*limit)
			now = now.Add(stop)
		}
	}
	return accepted / seconds, r.chance.known()
}

// Refusals by chance do not slow the rate down, and are found out; a limit is not taken for chance.
func TestChance(t *testing.T) {
	const runs = 20
	for _, ceiling := range []float64{50, 80} {
		for _, share := range []float64{0.03, 0.1} {
			for _, stop := range []time.Duration{0, time.Second} {
				mean, found := 0., 0
				for seed := range runs {
					r := New(ceiling)
					accepted, known := chanceOf(&r, 50, share, 300, stop, uint64(seed))
					mean += accepted / (50 * (1 - share)) / runs
					if known {
						found++
					}
				}
				least := 0.9
				if stop > 0 { // each refusal stops the limit until chance is known
					least = 0.8
				}
				require.Greater(t, mean, least, "%v %v %v", ceiling, share, stop)
				require.GreaterOrEqual(t, found, runs*6/10, "%v %v %v", ceiling, share, stop)
			}
		}
		r := New(ceiling)
		accepted, known := chanceOf(&r, 50, 0, 300, 0, 1)
		require.False(t, known)
		require.Greater(t, accepted, 47.)
	}
}

// Two refusals by chance that end a search at a hundredth of the limit are undone within seconds; so are many
// that have cut a known rate to a hundredth.
func TestClimb(t *testing.T) {
	const runs = 20
	for _, c := range []struct{ ceiling, share, mean, least float64 }{
		{unknown, 0.01, 0.8, 0.4}, {unknown, 0.03, 0.75, 0.05}, {unknown, 0.1, 0.8, 0.25}, {500, 0.1, 0.7, 0.15},
	} {
		mean, least := 0., 1.
		for seed := range runs {
			r := New(c.ceiling)
			send(&r, 16, -1, 0)
			accepted, _ := chanceOf(&r, 500, c.share, 60, time.Second, uint64(seed))
			used := accepted / (500 * (1 - c.share))
			mean += used / runs
			least = min(least, used)
		}
		t.Logf("%v: %.2f of the limit, least %.2f", c, mean, least)
		require.Greater(t, mean, c.mean, "%v", c)
		require.Greater(t, least, c.least, "%v", c)
	}
}

// climbing is a rate of 20 a second of which three calls were refused by chance, so that it climbs.
func climbing(t *testing.T) Rate {
	r := New(1000)
	send(&r, 20, -1, 0)
	require.True(t, r.Refused(at(0), at(-0.01), at(0)))
	now := 0.
	for range suspicious + 1 { // the last one is counted when calls after it were accepted
		send(&r, 20, now+0.01, now+2.5)
		r.rate, r.low, r.estimate, r.period, r.grown = 20, 20, 21, 30, 1
		require.True(t, r.Chance(at(now+2.5)))
		require.False(t, r.Refused(at(now+2.5), at(now+2.5), at(now+3.5)))
		now += 2.5
		if send(&r, 20, now+0.01, now+0.35); r.climb != nil {
			return r
		}
	}
	t.Fatal("no climb", r.chance)
	return r
}

// A climb in which no more is refused than before has found a background; the rate does not go back.
func TestClimbThatWasRight(t *testing.T) {
	r := climbing(t)
	begun := r.Now()
	for now := 7.9; r.climb != nil && now < 20; now += 0.1 {
		send(&r, r.Now(), now, now+0.1)
	}
	require.Nil(t, r.climb)
	require.True(t, r.chance.known())
	require.Greater(t, r.Now(), 1.5*begun)
	require.InDelta(t, 0.02, r.chance.share, 0.01)
	require.Equal(t, 1., r.chance.doubt)
}

// Two refusals close together end a climb: the rate, and the way on which it grew, are as before, and the next
// climb needs twice as much evidence.
func TestClimbThatWasWrong(t *testing.T) {
	r := climbing(t)
	before := *r.climb
	send(&r, 30, 7.9, 8.1)
	require.False(t, r.Refused(at(8.2), at(8.2), at(9.2)))
	require.True(t, r.Refused(at(8.21), at(8.21), at(9.2)))
	require.Nil(t, r.climb)
	require.False(t, r.chance.known())
	require.Equal(t, before.from, r.Now())
	require.Equal(t, before.growth, r.growth)
	require.Equal(t, 2., r.chance.doubt)
	require.Zero(t, r.chance.lone.refused)
	send(&r, 20, 8.3, 20)
	require.Nil(t, r.climb, "it takes six now")
}

// At less than three calls a second, and where the server says a rate, there is no climb.
func TestNoClimb(t *testing.T) {
	for _, c := range []struct {
		rate   float64
		said   bool
		climbs bool
	}{{2, false, false}, {4, false, true}, {4, true, false}} {
		r := New(100)
		r.Refused(at(0), at(-0.1), at(0))
		r.rate, r.low, r.estimate, r.period = c.rate, c.rate, c.rate, 1e6
		r.chance.cuts, r.best.rate = 100, c.rate
		if c.said {
			r.offered, r.heard = 50, at(1)
		}
		send(&r, c.rate, 1, 3)
		require.Equal(t, c.climbs, r.climb != nil, "%v", c)
	}
}

// What the server says ends a climb: the rate is as before it.
func TestSaidDuringAClimb(t *testing.T) {
	r := climbing(t)
	from, growth := r.climb.from, r.climb.growth
	send(&r, 30, 7.9, 8.1)
	r.Said(at(8.2), at(8.15), 1000)
	require.Nil(t, r.climb)
	require.Equal(t, growth.estimate, r.estimate)
	require.InDelta(t, from, r.Now(), 0.1*from)
}

// Without demand a climb finds nothing, nor do answers to calls that were sent before it.
func TestClimbWithoutDemand(t *testing.T) {
	r := climbing(t)
	excess := r.climb.excess
	for now := 8.; now < 20; now += 0.1 {
		r.Accepted(at(now), at(7.5), 1)
	}
	require.NotNil(t, r.climb)
	require.Equal(t, excess, r.climb.excess)
	send(&r, 15, 20, 60)
	require.Nil(t, r.climb)
	require.False(t, r.chance.known())
}

// A program that starts within a block has a rate afterwards.
func TestBlockFromTheStart(t *testing.T) {
	for _, ceiling := range []float64{16, 500, unknown} {
		r := New(ceiling)
		for i := range 3 {
			r.Refused(at(float64(i)), at(float64(i)-0.1), at(float64(i)))
		}
		r.Blocked(at(60), time.Minute)
		require.Greater(t, r.Now(), 1., "%v", ceiling)
		send(&r, r.Now(), 60, 120)
		require.Greater(t, r.Now(), 1., "%v", ceiling)
	}
}

// A refusal that ends a trial of a known background stops only its own call, whatever it says.
func TestKnownBackgroundStopsNothing(t *testing.T) {
	r := New(100)
	send(&r, 100, 0, 20)
	r.chance.share = 0.05
	r.chance.trial = trial{on: true, length: 100}
	for i := range 20 {
		now := 20 + float64(i)/100
		require.True(t, r.Chance(at(now)))
		if r.Refused(at(now), at(now), at(now+30)) {
			require.Zero(t, r.stopped)
			return
		}
	}
	t.Fatal("no cut")
}

// A background that was found by accident is doubted: cuts lead to another trial, and the rate does not collapse.
func TestWrongBackground(t *testing.T) {
	for _, perSecond := range []float64{5, 50} {
		for _, share := range []float64{0.03, 0.1} {
			r := New(perSecond)
			send(&r, perSecond, -10, 0)
			r.chance.share, r.chance.last = 0.005, at(0)
			accepted, known := chanceOf(&r, perSecond, share, 600, 0, 1)
			require.True(t, known)
			require.Greater(t, accepted, perSecond*(1-share)*0.8, "%v %v", perSecond, share)
		}
	}
}

// A trial that sees no refusal ends soon, and does not lower the rate.
func TestUnfoundedTrial(t *testing.T) {
	r := New(80)
	send(&r, 80, 0, 5)
	require.True(t, r.Refused(at(5), at(4.99), at(5)))
	send(&r, 60, 5, 6)
	r.chance.trial = trial{on: true, length: 100}
	r.low = r.Now()
	before := r.Now()
	send(&r, 60, 6, 6+70./60)
	require.True(t, r.chance.trial.on)
	send(&r, 60, 6+70./60, 6+90./60)
	require.False(t, r.chance.trial.on)
	require.False(t, r.chance.known())
	require.GreaterOrEqual(t, r.Now(), before)
}

// A trial at the ceiling that sees no refusal does not bring back an estimate from long ago.
func TestUnfoundedTrialAtTheCeiling(t *testing.T) {
	r := New(1000)
	r.Refused(at(0), at(-0.1), at(0))
	bucket(&r, 30, 0.5, 10)
	for now := 10.; now < 40; now += 0.1 {
		send(&r, r.Now(), now, now+0.1)
	}
	require.Equal(t, 1000., r.Now())
	r.chance.trial = trial{on: true, length: 100}
	r.low = r.Now()
	send(&r, 1000, 40, 45)
	require.False(t, r.chance.trial.on)
	require.Equal(t, 1000., r.Now())
}

// A rate that was accepted for long is back after a stop of t within min(t, 30 s); once: the next
// refusal is about the rate.
func TestPardon(t *testing.T) {
	for _, c := range []struct{ stop, within float64 }{{1, 1}, {10, 10}, {300, 30}} {
		r := New(50)
		send(&r, 50, 0, 30)
		require.True(t, r.Refused(at(30), at(29.99), at(30+c.stop)))
		resume := 30 + c.stop
		send(&r, 48, resume, resume+c.within+0.1)
		require.InDelta(t, 50, r.Now(), 0.5, "%v", c)
		send(&r, 50, resume+c.within+0.1, resume+c.within+12)
		require.True(t, r.Refused(at(resume+c.within+12), at(resume+c.within+11.99), at(resume+c.within+12+c.stop)))
		require.Less(t, r.Now(), 49., "%v", c)
	}
}

// A quota of five a minute is found at the first refusal, and the floor is far below it.
func TestSlowQuota(t *testing.T) {
	r := New(unknown)
	send(&r, 16, 0, 0.3)
	require.True(t, r.Refused(at(0.35), at(0.34), at(60)))
	require.InDelta(t, 5./60, r.Now(), 0.01)
}

// A known background that has ended is examined again, also if there were many cuts since the last trial.
func TestABackgroundThatEndedAfterCuts(t *testing.T) {
	now := at(0)
	c := chance{share: 0.05, patience: patience, last: now}
	for range 5 { // soon after a trial: 2 refusals, a cut
		c.refused(true, 10)
		c.refused(true, 10)
		c.cut(true)
	}
	for range 1_000_000 { // from then on nothing is refused
		c.accepted(true)
		now = now.Add(100 * time.Millisecond)
		if c.suspects(now) {
			return
		}
	}
	t.Fatalf("no trial in %v calls; all %+v below %+v cuts %v since %v", c.since, c.all, c.below, c.cuts, c.since)
}
