package adapt

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/judge/limitertest"
)

// shared has programs call one token bucket as fast as their rates allow, and says what became of the second half.
type shared struct {
	limit, level, last float64
	falls, part        float64 // from this time on only a part of the limit is left
	stop               float64 // that a refusal brings
	chance             float64 // share of the calls that are refused by chance,
	calm               float64 // from this time on
	bare               bool    // by a 429 without a time; else by a 503
	busy               bool    // the bucket answers 503, too
	seed               uint64
	random             *rand.Rand

	accepted        []float64
	sent, refused   float64
	now, warm, ends float64
}

func (s *shared) run(rates []Rate) {
	s.random, s.level = rand.New(rand.NewPCG(1+s.seed, 2)), s.limit/5
	next := make([]float64, len(rates))
	s.accepted = make([]float64, len(rates))
	for i := range next {
		next[i] = s.now + s.random.Float64()
	}
	for {
		i := 0
		for j := range next {
			if next[j] < next[i] {
				i = j
			}
		}
		if s.now = next[i]; s.now > s.ends {
			return
		}
		next[i] = s.call(&rates[i], i)
	}
}

// call makes a call, and returns when the program makes the next one.
func (s *shared) call(r *Rate, i int) (next float64) {
	r.Sent(at(s.now), 1)
	if s.part > 0 && s.now > s.falls {
		s.limit, s.part = s.limit*s.part, 0
	}
	s.level, s.last = min(max(2, s.limit/5), s.level+s.limit*(s.now-s.last)), s.now
	next = s.now
	chance := s.random.Float64() < s.chance && s.now > s.calm
	accepted := !chance && s.level >= 1
	unable := chance && !s.bare || !chance && s.busy
	switch {
	case accepted:
		s.level--
		r.Accepted(at(s.now), at(s.now), 1)
	case chance && s.bare, !accepted && r.Chance(unable):
		r.Refused(at(s.now), at(s.now), at(s.now), unable)
	default:
		next += s.stop
		r.Refused(at(s.now), at(s.now), at(next), unable)
	}
	if s.now > s.warm {
		s.sent++
		if accepted {
			s.accepted[i]++
		} else {
			s.refused++
		}
	}
	return next + (0.9+0.2*s.random.Float64())/r.Now()
}

// used, Jain's index and the share of refused calls.
func (s *shared) outcome() (used, jain, refused float64) {
	sum, squares := 0., 0.
	for _, n := range s.accepted {
		sum, squares = sum+n, squares+n*n
	}
	return sum / s.limit / (s.ends - s.warm), sum * sum / float64(len(s.accepted)) / squares, s.refused / s.sent
}

// Copies that share a limit of few calls do not believe in each other's 429s. Without any beliefs, .06 to .19 of their
// calls are refused; it was .44 to .82, but .14 for three at 5/s.
func TestCopiesOfFewCalls(t *testing.T) {
	for _, limit := range []float64{1, 5} {
		for _, n := range []int{3, 5, 10} {
			all := make([]float64, 6)
			for seed := range all {
				s := shared{limit: limit, seed: uint64(seed), warm: 300, ends: 1200}
				rates := make([]Rate, n)
				for i := range rates {
					rates[i] = New(unknown)
					rates[i].Accepted(at(0), at(-1), 1)
				}
				s.run(rates)
				_, _, all[seed] = s.outcome()
			}
			slices.Sort(all)
			require.Less(t, all[3], 0.22, "%d programs at %v/s", n, limit)
		}
	}
}

// A bucket that answers 503 stands before backends, of which a part is dead: what the bucket refuses is not taken for
// the dead backends' doing.
func TestDeadBackendsBehindABusyBucket(t *testing.T) {
	for _, n := range []int{1, 3} {
		for _, limit := range limits(20, 100) {
			for _, chance := range []float64{0.05, 0.25} {
				all := make([]float64, 8)
				for seed := range all {
					s := shared{limit: limit, chance: chance, calm: -1, busy: true, seed: uint64(seed), warm: 130, ends: 730}
					rates := make([]Rate, n)
					for i := range rates {
						rates[i] = New(unknown)
						rates[i].Accepted(at(0), at(-1), 1)
					}
					s.run(rates)
					all[seed], _, _ = s.outcome()
				}
				slices.Sort(all)
				require.Greater(t, all[4], 0.8, "%d programs, %v of %v/s", n, chance, limit)
				require.Greater(t, all[0], 0.5, "%d programs, %v of %v/s", n, chance, limit)
			}
		}
	}
}

// Programs that share a limit, with nothing but its refusals to tell them of each other, come to the same rate,
// whatever they began with. They use all of it, and few of their calls are refused.
func TestCrowd(t *testing.T) {
	for _, stop := range []float64{0, 1} {
		for n, most := range map[int]float64{1: 0.01, 3: 0.02, 10: 0.03, 30: 0.06} {
			s := shared{limit: 100, stop: stop, warm: 300, ends: 900}
			rates := make([]Rate, n)
			for i := range rates {
				rates[i] = New(100 * math.Pow(0.1, float64(i)/float64(n)))
			}
			s.run(rates)
			used, jain, refused := s.outcome()
			require.Greater(t, used, 0.94, "%d, %v", n, stop)
			require.Greater(t, jain, 0.92, "%d, %v", n, stop)
			require.Less(t, refused, most, "%d, %v", n, stop)
		}
	}
}

// limits leaves the highest one out for the race detector, which has nothing to find here.
func limits(all ...float64) []float64 {
	if limitertest.Slower > 1 {
		return all[:len(all)-1]
	}
	return all
}

// Refusals by chance do not slow the rate down much, and a limit is not taken for chance, however many share it.
func TestChance(t *testing.T) {
	for _, bare := range []bool{false, true} {
		for _, limit := range limits(5, 50, 500) {
			for _, share := range []float64{0.01, 0.03, 0.1} {
				for _, stop := range []float64{0, 1} {
					for _, ceiling := range []float64{1, 1.6, unknown} {
						if bare && stop > 0 { // the same again
							continue
						}
						s := shared{limit: limit, stop: stop, chance: share, calm: 60, bare: bare, warm: 130, ends: 730}
						r := []Rate{New(ceiling * limit)}
						r[0].Accepted(at(0), at(-1), 1)
						s.run(r)
						used, _, refused := s.outcome()
						least, most := 0.65, 2*share+0.03
						if bare {
							least, most = 0.55, 3*share+0.03
						}
						cell := []any{"bare %v, %v/s, %v, stop %v, ceiling %v", bare, limit, share, stop, ceiling}
						require.Greater(t, used, least, cell...)
						require.Less(t, refused, most, cell...)
					}
				}
			}
		}
	}
	for _, n := range []int{1, 3, 10, 30, 100} {
		s := shared{limit: 100, warm: 100, ends: 300}
		rates := make([]Rate, n)
		for i := range rates {
			rates[i] = New(unknown)
		}
		s.run(rates)
		believers := 0
		for i := range rates {
			if rates[i].imposed[tooMany].share > 0 {
				believers++
			}
		}
		require.LessOrEqual(t, believers, n/20, "%d programs", n)
	}
}

// A bucket that answers 503 is a limit as well: it is found as if it answered 429. With stops of 5 s, three programs may
// have unequal parts for minutes, so the mean of a few runs counts.
func TestBusyBucket(t *testing.T) {
	for _, limit := range limits(20, 100, 500) {
		for _, n := range []int{1, 3} {
			for _, stop := range []float64{0, 1, 5} {
				for _, ceiling := range []float64{1.6, unknown} {
					var used, jain, refused float64
					seeds := 1 + uint64(160/limit)
					for seed := range seeds {
						s := shared{limit: limit, stop: stop, busy: true, warm: 130, ends: 730, seed: seed}
						rates := make([]Rate, n)
						for i := range rates {
							rates[i] = New(ceiling * limit)
							rates[i].Accepted(at(0), at(-1), 1)
						}
						s.run(rates)
						u, j, r := s.outcome()
						used, jain, refused = used+u/float64(seeds), jain+j/float64(seeds), refused+r/float64(seeds)
					}
					cell := []any{"%v/s, %d programs, stop %v, ceiling %v", limit, n, stop, ceiling}
					require.Greater(t, used, 0.87, cell...)
					require.Greater(t, jain, 0.85, cell...)
					require.Less(t, refused, 0.04, cell...)
				}
			}
		}
	}
}

// Where a bucket answers 429, and one call in a hundred gets a 503 besides, a program that believes in the 503s does not
// take the others' share: it returns to the rate at which a 429 has cut it. Means of four runs.
func TestChanceInACrowd(t *testing.T) {
	for _, n := range []int{2, 3, 5, 10} {
		for _, ceiling := range []float64{100, unknown} {
			var used, jain, refused float64
			for seed := range uint64(4) {
				s := shared{limit: 100, chance: 0.01, warm: 100, ends: 500, seed: seed}
				rates := make([]Rate, n)
				for i := range rates {
					rates[i] = New(ceiling)
				}
				s.run(rates)
				u, j, r := s.outcome()
				used, jain, refused = used+u/4, jain+j/4, refused+r/4
			}
			require.Greater(t, used, 0.97, "%d", n)
			require.Greater(t, jain, 0.92, "%d", n)
			require.Less(t, refused, 0.025, "%d", n)
		}
	}
}

// When a limit falls under programs that share it, refusals look like a share for a while: programs that believe so do
// not keep each other's refusals up. Without any beliefs at 20/s three programs would have .10 and .21 of their calls
// refused in the next four minutes, after a fall to a half and to a fifth, and ten .23 and .41; at 100/s .01 and .05,
// .06 and .16.
func TestLimitFalls(t *testing.T) {
	for _, c := range []struct {
		busy        bool // 503s; else 429s
		limit, part float64
		three, ten  float64 // refused, at most
	}{
		{true, 20, 0.5, 0.32, 0.62},
		{true, 20, 0.2, 0.55, 0.82},
		{true, 100, 0.5, 0.1, 0.25},
		{true, 100, 0.2, 0.2, 0.45},
		{false, 20, 0.5, 0.25, 0.45},
		{false, 20, 0.2, 0.5, 0.7},
		{false, 100, 0.5, 0.05, 0.18},
		{false, 100, 0.2, 0.1, 0.42},
	} {
		for n, most := range map[int]float64{3: c.three, 10: c.ten} {
			all := make([]float64, 8)
			for seed := range all {
				falls := 200 + dipEach.Seconds()*float64(seed)/8
				s := shared{
					limit: c.limit, busy: c.busy, falls: falls, part: c.part, warm: falls, ends: falls + 240, seed: uint64(seed),
				}
				rates := make([]Rate, n)
				for i := range rates {
					rates[i] = New(unknown)
					rates[i].Accepted(at(0), at(-1), 1)
				}
				s.run(rates)
				used, _, refused := s.outcome()
				all[seed] = refused
				require.Greater(t, used, 0.7, "%v, %d programs, seed %d", c, n, seed)
			}
			slices.Sort(all)
			require.Less(t, all[4], most, "%v, %d programs", c, n)
		}
	}
}

// A crowd may look like other programs that do not yield. Programs that believe in these come back to the rate from
// which they fell, and take no more.
func TestBelieversStay(t *testing.T) {
	r := found(50)
	r.ceiling = unknown
	now := 1000.
	r.believe(at(now), tooMany, tally{calls: 200, refused: 20})
	r.imposed[tooMany].fell = 60
	for range 590 { // nearly ten minutes, in which a tenth of the calls is refused
		now++
		send(&r, 9, now, now+0.9)
		r.Refused(at(now+0.9), at(now+0.9), at(now+0.9), false)
	}
	require.InEpsilon(t, 60, r.Now(), 0.12)
}
