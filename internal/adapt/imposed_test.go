package adapt

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Backends are dead, half of them at most: what the others can take is used, half of that with the worst of eight
// seeds.
func TestDeadBackends(t *testing.T) {
	for share, least := range map[float64]float64{0.1: 0.8, 0.2: 0.7, 0.25: 0.65, 0.33: 0.55, 0.5: 0.33} {
		for _, limit := range limits(15, 100) {
			for _, ceiling := range []float64{1, 1.6, unknown} {
				all := make([]float64, 8)
				for seed := range all {
					s := shared{limit: limit, chance: share, calm: -1, seed: uint64(seed), warm: 130, ends: 730}
					r := []Rate{New(ceiling * limit)}
					r[0].Accepted(at(0), at(-1), 1)
					s.run(r)
					all[seed], _, _ = s.outcome()
				}
				slices.Sort(all)
				require.Greater(t, all[4], least, "%v of %v/s, ceiling %v", share, limit, ceiling)
				require.Greater(t, all[0], least/2, "%v of %v/s, ceiling %v", share, limit, ceiling)
			}
		}
	}
}

// A belief that dips prove again and again does not end by itself: half an hour of dead backends looks like its first
// ten minutes.
func TestDeadBackendsForLong(t *testing.T) {
	for ceiling, least := range map[float64]float64{100: 0.77, unknown: 0.925} {
		s := shared{limit: 100, chance: 0.2, calm: -1, warm: 300, ends: 2100}
		r := []Rate{New(ceiling)}
		r[0].Accepted(at(0), at(-1), 1)
		s.run(r)
		used, _, _ := s.outcome()
		require.Greater(t, used, least, "ceiling %v", ceiling)
	}
}

// A share that halves with the rate, in the first seconds of a minute, is the doing of copies.
func TestBeliefThatIsWrong(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, wrong := range []bool{false, true} {
		r, now := found(50), 1000.
		r.believe(at(now), unable, tally{calls: 100, refused: 30})
		ended := false
		for ; now < 1100; now += 1 / r.Now() {
			r.Sent(at(now), 1)
			if share := 0.3; random.Float64() < share && !(wrong && r.imposed[unable].dip > 0) {
				r.Refused(at(now), at(now), at(now), true)
			} else {
				r.Accepted(at(now), at(now), 1)
			}
			ended = ended || r.imposed[unable].share == 0
		}
		require.Equal(t, wrong, ended)
	}
}

// Half of the calls are refused at any rate, because others do not yield: that is found, and calls come back. A bucket
// of the own is not taken for it.
func TestOthersDoNotYield(t *testing.T) {
	for _, stop := range []float64{0, 1} {
		for _, alone := range []bool{false, true} {
			random := rand.New(rand.NewPCG(3, 4))
			r, now, level, found := New(20), 1000., 4., false
			for end := now + 300; now < end; now += 1 / r.Now() {
				r.Sent(at(now), 1)
				level = min(4, level+5/r.Now())
				if ok := random.Float64() < 0.5; alone && level >= 1 || !alone && ok {
					level--
					r.Accepted(at(now), at(now), 1)
					continue
				}
				waits := stop
				if r.Chance(false) {
					waits = 0
				}
				r.Refused(at(now), at(now), at(now+waits), false)
				now, level = now+waits, min(4, level+5*waits)
				found = found || r.imposed[tooMany].share > 0
			}
			require.NotEqual(t, alone, found, "stop %v", stop)
			if !alone {
				require.Greater(t, r.Now(), 4., "stop %v", stop)
			}
		}
	}
}

// When backends recover, a dip sees no refusals, as copies would. So the rate stays, also if that is a moment before
// the dip, when the calls outside of it have still seen refusals.
func TestBackendsRecover(t *testing.T) {
	for limit, share := range map[float64]float64{100: 0.25, 60: 0.5} {
		for _, ceiling := range []float64{1.6, unknown} {
			for seed := range 15 {
				random, until := rand.New(rand.NewPCG(uint64(seed), 2)), 300+dipEach.Seconds()*float64(seed)/15
				r, level, last := New(ceiling*limit), limit/5, 0.
				r.Accepted(at(0), at(-1), 1)
				accepted := make([]float64, 50)
				for now := 0.; now < 500; now += 1 / r.Now() {
					r.Sent(at(now), 1)
					level, last = min(limit/5, level+limit*(now-last)), now
					if dead := now < until && random.Float64() < share; dead || level < 1 {
						r.Refused(at(now), at(now), at(now), dead)
						continue
					}
					level--
					accepted[int(now)/10]++
					r.Accepted(at(now), at(now), 1)
				}
				for i, n := range accepted[int(until)/10+1:] {
					cell := []any{"%v/s, ceiling %v, seed %d: %d s after", limit, ceiling, seed, 10 * i}
					require.Greater(t, n, 6*limit, cell...)
				}
			}
		}
	}
}

// A program that believes in a share meets an outage, which begins with an event of the other kind: ten refusals in a
// row stop only their calls, the next ones stop all.
func TestBeliefInAnOutage(t *testing.T) {
	for _, notAble := range []bool{false, true} {
		r := found(50)
		r.believe(at(1000), kindOf(notAble), tally{calls: 100, refused: 30})
		r.imposed[kindOf(notAble)].fell = 100
		r.Refused(at(1000), at(1000), at(1000), !notAble)
		require.False(t, r.proven)
		excused := 0
		for now := 1000.1; now < 1030; now += 1 / r.Now() {
			r.Sent(at(now), 1)
			if r.Chance(notAble) {
				excused++
			}
			r.Refused(at(now), at(now), at(now), notAble)
		}
		require.LessOrEqual(t, excused, int(mostBudget), "503: %v", notAble)
		require.Greater(t, excused, int(mostBudget)/2, "503: %v", notAble)
	}
}

// A refusal that comes before any rate is known leaves none that is infinite, and what is believed keeps a rate above
// its floor.
func TestBeliefsAreFinite(t *testing.T) {
	for _, r := range []Rate{New(unknown), Known(20)} {
		random := rand.New(rand.NewPCG(5, 6))
		for now := 0.; now < 600; now += 1 / min(1000, r.Now()) {
			r.Sent(at(now), 1)
			if now == 0 || random.Float64() < 0.5 {
				r.Refused(at(now), at(now), at(now), false)
			} else {
				r.Accepted(at(now), at(now), 1)
			}
			for _, rate := range []float64{r.imposed[tooMany].now.rate, r.imposed[tooMany].fell, r.limited, r.right} {
				require.False(t, math.IsInf(rate, 0), "at %v", now)
			}
			requireSane(t, r)
			require.True(t, r.row >= halving || r.Now() >= r.floor, "%v at %v", r.Now(), now)
		}
		require.Positive(t, r.imposed[tooMany].share)
	}
}

// Once a limit has answered 429. A day later it answers 503: these are still taken for the limit's own.
func TestLimitedLongAgo(t *testing.T) {
	s := shared{limit: 100, busy: true, warm: 100, ends: 500}
	rates := make([]Rate, 10)
	for i := range rates {
		rates[i] = New(100)
		rates[i].Refused(at(-86400), at(-86400), at(-86400), false)
		rates[i].Accepted(at(-86300), at(-86301), 1)
	}
	s.run(rates)
	_, jain, refused := s.outcome()
	require.Less(t, refused, 0.2)
	require.Greater(t, jain, 0.8)
}

// A share that is believed may rise: first a twentieth of the backends is dead, then half of them.
func TestShareThatRises(t *testing.T) {
	for _, ceiling := range []float64{100, unknown} {
		random := rand.New(rand.NewPCG(7, 8))
		r, level, last, accepted := New(ceiling), 20., 0., 0
		r.Accepted(at(0), at(-1), 1)
		for now := 0.; now < 600; now += 1 / r.Now() {
			r.Sent(at(now), 1)
			level, last = min(20, level+100*(now-last)), now
			share := 0.05
			if now > 240 {
				share = 0.5
			}
			if dead := random.Float64() < share; dead || level < 1 {
				r.Refused(at(now), at(now), at(now), dead)
				continue
			}
			level--
			r.Accepted(at(now), at(now), 1)
			if now > 300 {
				accepted++
			}
		}
		require.Greater(t, accepted, 20*300, "of 50/s, ceiling %v", ceiling)
	}
}

// Copies are the cause, so few calls are refused in dips; and acceptances take longer than refusals, also longer than a
// dip. Each answer counts where its call was sent, so no dip proves the belief.
func TestSlowAnswersInDips(t *testing.T) {
	for _, took := range []float64{0.02, 0.3, 1, 2, 3, 5} {
		random := rand.New(rand.NewPCG(1, 2))
		r, now := found(50), 1000.
		r.believe(at(now), tooMany, tally{calls: 100, refused: 30})
		r.imposed[tooMany].fell = 1000
		var late []float64 // when the calls were sent whose acceptances are to come
		for ; now < 1590 && r.imposed[tooMany].share > 0; now += 1 / r.Now() {
			r.Sent(at(now), 1)
			share := 0.3
			if r.imposed[tooMany].dip > 0 {
				share = 0.06
			}
			for len(late) > 0 && late[0]+took <= now {
				r.Accepted(at(late[0]+took), at(late[0]), 1)
				late = late[1:]
			}
			if random.Float64() < share {
				r.Refused(at(now), at(now), at(now), false)
			} else {
				late = append(late, now)
			}
			require.False(t, r.imposed[tooMany].proved(), "%v s, at %v", took, now)
		}
	}
}

// A quarter of the backends is dead, and says so after a second, or three: the others are used.
func TestSlowRefusals(t *testing.T) {
	for _, took := range []float64{1, 3} {
		random := rand.New(rand.NewPCG(3, 4))
		r, level, last, accepted := New(unknown), 20., 0., 0
		r.Accepted(at(0), at(-1), 1)
		var late []float64
		for now := 0.; now < 600; now += 1 / r.Now() {
			for len(late) > 0 && late[0]+took <= now {
				r.Refused(at(late[0]+took), at(late[0]), at(late[0]+took), true)
				late = late[1:]
			}
			r.Sent(at(now), 1)
			level, last = min(20, level+100*(now-last)), now
			switch dead := random.Float64() < 0.25; {
			case dead:
				late = append(late, now)
			case level < 1:
				r.Refused(at(now), at(now), at(now), false)
			default:
				level--
				r.Accepted(at(now), at(now), 1)
				if now > 200 {
					accepted++
				}
			}
		}
		require.Greater(t, accepted, 65*400, "%v s", took)
	}
}

// Backends are dead, and recover: a belief that was proved before has ended ten minutes later.
func TestBeliefEndsWhenProofsDo(t *testing.T) {
	for _, rate := range []float64{1, 5, 20} {
		random := rand.New(rand.NewPCG(1, 2))
		r, proved := found(rate), false
		r.believe(at(1000), unable, tally{calls: 100, refused: 30})
		for now := 1000.; now < 1600+remembered.Seconds()+1; now += 1 / min(rate, r.Now()) {
			r.Sent(at(now), 1)
			if now < 1600 && random.Float64() < 0.3 {
				r.Refused(at(now), at(now), at(now), true)
			} else {
				r.Accepted(at(now), at(now), 1)
			}
			proved = proved || r.imposed[unable].proved()
		}
		require.True(t, proved, "%v/s", rate)
		require.Zero(t, r.imposed[unable].share+r.imposed[unable].odds, "%v/s", rate)
	}
}
