package conform

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/judge/limitertest"
)

// queues is how many random queues a test runs: PACE_QUEUES of the environment (a row of 600,000 takes about five
// minutes), 600 where PACE_LONG is set, or else what takes a second or two in all.
func queues(t *testing.T) int {
	if text := os.Getenv("PACE_QUEUES"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		return n
	}
	if os.Getenv("PACE_LONG") != "" {
		return 600
	}
	if testing.Short() || limitertest.Slower > 1 {
		return 50
	}
	return 150
}

// randomBytes are the program of a random queue.
func randomBytes(seed uint64) []byte {
	random := rand.New(rand.NewPCG(1, seed))
	p := make([]byte, 20+random.IntN(80)&^1)
	for i := range p {
		p[i] = byte(random.Uint32())
	}
	return p
}

// Random queues, judged by the model: no request earlier than it says, and at most one slot in a thousand later. Paid
// upfront, where the rate changes and something comes back, it may be 3 (see TestRatesMintNothing), and 10 where stored
// permits have a price.
func TestRandomQueues(t *testing.T) {
	for _, c := range []struct {
		name  string
		kinds []kind
		with  features
		key   bool // one of many
	}{
		{"nothing given back, paid later", kinds(false), pauses | rates, false},
		{"nothing given back, paid upfront", kinds(true), pauses | rates, false},
		{"nothing given back, warming up", warming(false), pauses | rates, false},
		{"nothing given back, warming up, paid upfront", warming(true), pauses | rates, false},
		{"paid later", kinds(false), returns, false},
		{"paid later, with pauses and charges", kinds(false), returns | pauses | charges, false},
		{"paid later, with new rates", kinds(false), returns | rates, false},
		{"paid later, with all of it", kinds(false), returns | pauses | charges | rates, false},
		{"paid later, a request waits when the rate changes", kinds(false), returns | rates | crowded, false},
		{"paid upfront", kinds(true), returns, false},
		{"paid upfront, with pauses and charges", kinds(true), returns | pauses | charges, false},
		{"paid upfront, with new rates", kinds(true), returns | rates, false},
		{"paid upfront, with all of it", kinds(true), returns | pauses | charges | rates, false},
		{"paid upfront, a request waits when the rate changes", kinds(true), returns | rates | crowded, false},
		{"warming up", warming(false), returns, false},
		{"warming up, with all of it", warming(false), returns | pauses | charges | rates, false},
		{"warming up, paid upfront", warming(true), returns, false},
		{"warming up, paid upfront, with all of it", warming(true), returns | pauses | charges | rates, false},
		{"a key of many, paid later", kinds(false), returns | charges, true},
		{"a key of many, paid upfront", kinds(true), returns | charges, true},
		{"a key of many, warming up", warming(false), returns | charges, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			sum := &tally{T: t}
			for seed := range queues(t) {
				k := c.kinds[seed%len(c.kinds)]
				j := newJudge(k, k.subject(t, c.key))
				j.run(randomBytes(uint64(seed)), c.with)
				sum.add(j)
			}
			switch {
			case c.kinds[0].warm != nil && c.kinds[0].upfront:
				sum.check(0.01)
			case c.with&rates != 0 && c.with&returns != 0:
				sum.check(0.003)
			default:
				sum.check(0.001)
			}
		})
	}
}

// A tally counts what judges found.
type tally struct {
	*testing.T
	queues, slots, earlier, laterQueues, laterSlots int
	longest                                         time.Duration
}

// add counts what a judge found, and shows the first queue of each kind of fault.
func (y *tally) add(j *judge) {
	y.slots += len(j.tickets)
	if j.early != "" {
		if y.earlier++; y.earlier == 1 {
			y.Errorf("queue %d: %s%s", y.queues, j.trace(), j.early)
		}
	}
	if len(j.late) > 0 {
		if y.laterQueues++; y.laterQueues == 1 {
			y.Logf("queue %d: %s%s, %v too late", y.queues, j.trace(), j.late[0].what, j.late[0].by)
		}
	}
	for _, l := range j.late {
		if l.slot {
			y.laterSlots++
		}
		y.longest = max(y.longest, l.by)
	}
	y.queues++
}

// check fails the test if a queue was earlier than the model's, or more than so many were later for each slot.
func (y *tally) check(later float64) {
	y.Logf("%d queues, %d slots: %d queues earlier, %d later; %d slots later, by at most %v",
		y.queues, y.slots, y.earlier, y.laterQueues, y.laterSlots, y.longest)
	require.Positive(y, y.slots)
	require.Zero(y, y.earlier)
	require.LessOrEqual(y, float64(y.laterSlots), later*float64(y.slots))
	require.LessOrEqual(y, float64(y.laterQueues), later*float64(y.slots))
}
