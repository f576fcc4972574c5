package pace_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// queues is how many random queues a test runs: PACE_QUEUES of the environment, for the long run
// (PACE_QUEUES=600000), or a number that takes
// a few seconds. A row of 600,000 takes about five minutes.
func queues(t *testing.T) int {
	if text := os.Getenv("PACE_QUEUES"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		return n
	}
	if testing.Short() || slow {
		return 100
	}
	return 600
}

// program is what a random queue does.
func program(seed uint64) []byte {
	random := rand.New(rand.NewPCG(1, seed))
	p := make([]byte, 20+random.IntN(80)&^1)
	for i := range p {
		p[i] = byte(random.Uint32())
	}
	return p
}

// Random queues, judged by the model: nobody earlier than it says, and at most one slot in a
// thousand later.
func TestRandomQueues(t *testing.T) {
	for _, c := range []struct {
		name  string
		kinds []kind
		with  features
	}{
		{"nothing given back, paid later", kinds(false), pauses | rates},
		{"nothing given back, paid upfront", kinds(true), pauses | rates},
		{"nothing given back, warming up", warming(false), pauses | rates},
		{"nothing given back, warming up, paid upfront", warming(true), pauses},
		{"paid later", kinds(false), returns},
		{"paid later, with pauses and charges", kinds(false), returns | pauses | charges},
		{"paid later, with new rates", kinds(false), returns | rates},
		{"paid later, with all of it", kinds(false), returns | pauses | charges | rates},
		{"paid upfront", kinds(true), returns},
		{"paid upfront, with pauses and charges", kinds(true), returns | pauses | charges},
		{"paid upfront, with new rates", kinds(true), returns | rates},
		{"warming up", warming(false), returns},
		{"warming up, with all of it", warming(false), returns | pauses | charges | rates},
		{"warming up, paid upfront", warming(true), returns},
		{"warming up, paid upfront, with pauses and charges", warming(true), returns | pauses | charges},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := queues(t)
			slots, earlier, laterQueues, laterSlots, longest := 0, 0, 0, 0, time.Duration(0)
			for seed := range n {
				j := c.kinds[seed%len(c.kinds)].judge(t)
				j.run(program(uint64(seed)), c.with)
				slots += len(j.tickets)
				if j.early != "" {
					if earlier++; earlier == 1 {
						t.Errorf("queue %d: %s%s", seed, j.trace(), j.early)
					}
				}
				if len(j.late) > 0 {
					if laterQueues++; laterQueues == 1 {
						t.Logf("queue %d: %s%s, %v too late", seed, j.trace(), j.late[0].what, j.late[0].by)
					}
				}
				for _, l := range j.late {
					if l.slot {
						laterSlots++
					}
					longest = max(longest, l.by)
				}
			}
			t.Logf("%d queues, %d slots: %d queues earlier, %d later; %d slots later, by at most %v",
				n, slots, earlier, laterQueues, laterSlots, longest)
			require.Zero(t, earlier)
			require.LessOrEqual(t, float64(laterSlots), 0.001*float64(slots))
			require.LessOrEqual(t, float64(laterQueues), 0.001*float64(slots))
		})
	}
}
