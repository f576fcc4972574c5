package adapt

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// shared has programs call one token bucket as fast as their rates allow, and says what became of the second half.
type shared struct {
	limit, level, last float64
	stop               float64 // that a refusal brings
	chance             float64 // share of the calls that get a 503
	random             *rand.Rand

	accepted        []float64
	sent, refused   float64
	now, warm, ends float64
}

func (s *shared) run(rates []Rate) {
	s.random, s.level = rand.New(rand.NewPCG(1, 2)), s.limit/5
	next := make([]float64, len(rates))
	s.accepted = make([]float64, len(rates))
	for i := range next {
		next[i] = s.random.Float64()
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
	s.level, s.last = min(s.limit/5, s.level+s.limit*(s.now-s.last)), s.now
	unable := s.random.Float64() < s.chance
	if s.now > s.warm {
		s.sent++
	}
	next = s.now
	switch {
	case !unable && s.level >= 1:
		s.level--
		r.Accepted(at(s.now), at(s.now), 1)
		if s.now > s.warm {
			s.accepted[i]++
		}
	default:
		if !unable || !r.Chance(at(s.now)) {
			next += s.stop
		}
		r.Refused(at(s.now), at(s.now), at(next), unable)
		if s.now > s.warm {
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

// Programs that share a limit, with nothing but its refusals to tell them of each other, come to the same rate, whatever
// they began with. They use all of it, and few of their calls are refused.
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

// Refusals by chance do not slow the rate down, and a limit is not taken for chance.
func TestChance(t *testing.T) {
	for _, limit := range []float64{5, 50, 500} {
		for _, share := range []float64{0.01, 0.03, 0.1} {
			for _, stop := range []float64{0, 1} {
				for _, ceiling := range []float64{1, 1.6, unknown} {
					s := shared{limit: limit, stop: stop, chance: share, warm: 130, ends: 730}
					r := []Rate{New(ceiling * limit)}
					r[0].Accepted(at(0), at(-1), 1)
					s.run(r)
					used, _, refused := s.outcome()
					require.Greater(t, used, 0.65, "%v/s, %v, %v, %v", limit, share, stop, ceiling)
					require.Less(t, refused, 2*share+0.03, "%v/s, %v, %v, %v", limit, share, stop, ceiling)
				}
			}
		}
	}
	s := shared{limit: 50, warm: 100, ends: 700}
	r := []Rate{New(80)}
	s.run(r)
	require.Zero(t, r[0].chance.share)
}

// An experiment that makes a difference ends, and the rate is as before it; so does one in which there are too few calls to tell.
func TestExperiment(t *testing.T) {
	suspicion := func() Rate {
		r := found(50)
		for i := range int(suspicious) {
			now := 1000 + float64(i)
			send(&r, 40, now, now+0.9)
			r.Refused(at(now+0.9), at(now+0.9), at(now+0.9), true)
		}
		require.NotZero(t, r.chance.from)
		require.InEpsilon(t, raised*r.chance.from, r.Now(), 0.01)
		return r
	}
	r := suspicion()
	from := r.chance.from
	for i := 0; r.chance.from > 0; i++ {
		now := 1010 + float64(i)/60
		if i%3 == 2 {
			r.Refused(at(now), at(now), at(now), true)
		} else {
			r.Accepted(at(now), at(now), 1)
		}
	}
	require.InEpsilon(t, from, r.Now(), 0.02)
	require.Zero(t, r.chance.share)

	r = suspicion()
	send(&r, 1, 1010, 1010+PerStop)
	require.Zero(t, r.chance.from)

	r = suspicion()
	send(&r, raised*from, 1010, 1015)
	require.NotZero(t, r.chance.share)
	require.True(t, r.Chance(at(1015)))
	require.False(t, r.Refused(at(1015), at(1015), at(1015), true))
	require.True(t, r.Refused(at(1015.1), at(1015.1), at(1015.1), false), "a 429 always counts")
}
