package adapt

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A quarter or a third of the backends is dead: what the others can take is used. Before, the rate fell to 1/(25 p).
func TestDeadBackends(t *testing.T) {
	for share, least := range map[float64]float64{0.1: 0.8, 0.2: 0.7, 0.25: 0.65, 0.33: 0.5} {
		for _, limit := range limits(15, 100) {
			for _, ceiling := range []float64{1, 1.6, unknown} {
				s := shared{limit: limit, chance: share, calm: -1, warm: 130, ends: 730}
				r := []Rate{New(ceiling * limit)}
				r[0].Accepted(at(0), at(-1), 1)
				s.run(r)
				used, _, _ := s.outcome()
				require.Greater(t, used, least, "%v of %v/s, ceiling %v", share, limit, ceiling)
			}
		}
	}
}

// A share that halves with the rate, in the first seconds of a minute, is the doing of copies.
func TestBeliefThatIsWrong(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, wrong := range []bool{false, true} {
		r, now := found(50), 1000.
		r.believe(at(now), unable, tally{calls: 100, refused: 30})
		for ; now < 1200; now += 1 / r.Now() {
			r.Sent(at(now), 1)
			if share := 0.3; random.Float64() < share && !(wrong && r.imposed[unable].dip > 0) {
				r.Refused(at(now), at(now), at(now), true)
			} else {
				r.Accepted(at(now), at(now), 1)
			}
		}
		require.NotEqual(t, wrong, r.chance[unable].share > 0)
	}
}

// Half of the calls are refused at any rate, because others do not yield: that is found, and calls come back. A bucket of
// the own is not taken for it.
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
				if r.Chance(at(now), false) {
					waits = 0
				}
				r.Refused(at(now), at(now), at(now+waits), false)
				now, level = now+waits, min(4, level+5*waits)
				found = found || r.imposed[tooMany].found > 0
			}
			require.NotEqual(t, alone, found, "stop %v", stop)
			if !alone {
				require.Greater(t, r.Now(), 4., "stop %v", stop)
			}
		}
	}
}
