package conform

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
)

// Everything that can happen to a small limiter: each sequence of so many operations, for each small store,
// judged by the model. Four operations in each run; where 600 queues are run five (half a second for each limiter),
// and six (ten times as long) where more are.
//
// All requests are asked for their times after each operation. In the shorter run, "not asked", that is only after the
// last. A request that was granted meanwhile says no time after its grant.
func TestExhaustive(t *testing.T) {
	depth := 4
	if n := queues(t); n > 600 {
		depth = 6
	} else if n == 600 {
		depth = 5
	}
	for _, upfront := range []bool{false, true} {
		for capacity := range 4 {
			k := kind{rate: dyadic(27), fixed: float64(capacity), isFixed: true, stored: float64(capacity), upfront: upfront, unit: 1}
			t.Run(k.String(), func(t *testing.T) {
				e := &exhaustive{t: t, kind: k, subject: func() subject { return k.real(t) }, ask: true}
				e.run(depth)
			})
			t.Run(k.String()+", not asked", func(t *testing.T) {
				e := &exhaustive{t: t, kind: k, subject: func() subject { return k.real(t) }}
				e.run(depth - 1)
			})
		}
	}
}

type exhaustive struct {
	t                                *testing.T
	kind                             kind
	subject                          func() subject
	ask                              bool // after each operation
	sequences, slots, earlier, later int
}

func (e *exhaustive) run(depth int) {
	e.extend(nil, depth)
	e.t.Logf("%d sequences, %d slots: %d sequences earlier, %d slots later", e.sequences, e.slots, e.earlier, e.later)
	require.Zero(e.t, e.earlier)
	require.LessOrEqual(e.t, float64(e.later), 0.001*float64(e.slots))
}

// A step is one operation.
type step func(j *judge)

// extend tries each operation after those of a path. One that already differs is not followed.
func (e *exhaustive) extend(path []step, depth int) {
	j := newJudge(e.kind, e.subject())
	for i, do := range path {
		do(j)
		if e.ask || i == len(path)-1 {
			j.look()
		}
	}
	j.invariant()
	e.sequences++
	e.slots += len(j.tickets)
	switch {
	case j.early != "":
		if e.earlier++; e.earlier == 1 {
			e.t.Errorf("%s%s", j.trace(), j.early)
		}
	case len(j.late) > 0:
		if e.later++; e.later == 1 {
			e.t.Logf("%s%s, %v too late", j.trace(), j.late[0].what, j.late[0].by)
		}
	case depth > 0:
		for _, next := range e.steps(j) {
			e.extend(append(path[:len(path):len(path)], next), depth-1)
		}
	}
}

// steps are the operations that change something.
func (e *exhaustive) steps(j *judge) (all []step) {
	for n := 1; n <= 3; n++ {
		all = append(all, func(j *judge) { j.reserve(n, reserve.Forever) })
	}
	for _, i := range j.open() {
		n := j.tickets[i].permits
		all = append(all, func(j *judge) { j.settle(i, 0) }, func(j *judge) { j.settle(i, n+1) })
		if n > 1 {
			all = append(all, func(j *judge) { j.settle(i, n-1) })
		}
	}
	if len(j.tickets) > 0 { // until then it is full, and stays so
		half := time.Duration(e.kind.interval()) / 2
		all = append(all, func(j *judge) { j.advance(half) }, func(j *judge) { j.advance(4 * half) })
	}
	return all
}
