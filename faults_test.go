package pace_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/model"
)

// modelSubject is the model, judged by itself: a judge that accepts it is not too strict. With a
// fault it is what a judge has to find.
type modelSubject struct {
	*model.Limiter
	now time.Duration
}

func whole(t float64) time.Duration { return time.Duration(math.Floor(t)) }

func (k kind) fake() *modelSubject { return &modelSubject{Limiter: k.model()} }

func (s *modelSubject) advance(d time.Duration) {
	s.Advance(float64(d))
	s.now += d
}

func (s *modelSubject) reserve(n int, maxWait time.Duration) (int, time.Duration, bool) {
	within := float64(maxWait)
	if maxWait == math.MaxInt64 {
		within = math.Inf(1)
	}
	id, wait, ok := s.Reserve(n, within)
	return id, whole(wait), ok
}

func (s *modelSubject) tryAcquire(n int) bool {
	_, ok := s.TryAcquire(n)
	return ok
}

func (s *modelSubject) settle(id, actual int)     { s.Settle(id, actual) }
func (s *modelSubject) at(id int) time.Duration   { return whole(s.Times()[id]) }
func (s *modelSubject) nextFree() time.Duration   { return whole(s.NextFree()) }
func (s *modelSubject) stored() float64           { return s.Stored() }
func (s *modelSubject) pause(until time.Duration) { s.PauseUntil(float64(until)) }
func (s *modelSubject) resume()                   { s.Resume() }
func (s *modelSubject) setRate(rate float64)      { s.SetRate(rate) }
func (s *modelSubject) retime(rate float64)       { s.Retime(rate) }

// The model keeps the invariant and its promises, and the judge finds nothing wrong with it.
func TestModelAgainstItself(t *testing.T) {
	for i := range queues(t) {
		upfront := i%2 == 1
		all, with := kinds(upfront), returns|pauses|charges
		if i%3 == 0 {
			all = warming(upfront)
		}
		if i%5 == 0 {
			with |= rates
		}
		k := all[i%len(all)]
		j := newJudge(k, k.fake())
		j.run(program(uint64(i)), with)
		require.Empty(t, j.early, "queue %d: %s", i, j.trace())
		require.Empty(t, j.late, "queue %d: %s", i, j.trace())
	}
}
