package conform

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/judge/model"
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
		j.run(randomBytes(uint64(i)), with)
		require.Empty(t, j.early, "queue %d: %s", i, j.trace())
		require.Empty(t, j.late, "queue %d: %s", i, j.trace())
	}
}

func TestModelAgainstItselfExhaustively(t *testing.T) {
	for _, k := range []kind{
		{rate: dyadic(27), fixed: 0, isFixed: true, unit: 1},
		{rate: dyadic(27), fixed: 2, isFixed: true, stored: 2, unit: 1, upfront: true},
	} {
		e := &exhaustive{t: t, kind: k, subject: func() subject { return k.fake() }}
		e.extend(nil, 4)
		require.Greater(t, e.sequences, 1500)
		require.Zero(t, e.earlier+e.later)
	}
}

// Faults that a limiter might have. Each is found by random queues, as earlier or as later.
func TestFaultsAreFound(t *testing.T) {
	for _, c := range []struct {
		name    string
		make    func(k kind, m *modelSubject) subject
		upfront bool
		earlier bool // or else later
	}{
		{name: "saves up more", earlier: true, make: func(k kind, m *modelSubject) subject {
			k.fixed, k.isFixed = k.capacity()+1, true
			return k.fake()
		}},
		{name: "saves up less", make: func(k kind, m *modelSubject) subject {
			k.fixed, k.isFixed = max(0, k.capacity()-1), true
			return k.fake()
		}},
		{name: "starts with more", earlier: true, make: func(k kind, m *modelSubject) subject {
			k.stored++
			return k.fake()
		}},
		{name: "pays later", upfront: true, earlier: true, make: func(k kind, m *modelSubject) subject {
			k.upfront = false
			return k.fake()
		}},
		{name: "pays upfront", make: func(k kind, m *modelSubject) subject {
			k.upfront = true
			return k.fake()
		}},
		{name: "nothing comes back after its time", make: func(k kind, m *modelSubject) subject { return lateIsLost{m} }},
		{name: "nothing comes back after its time, upfront", upfront: true, make: func(k kind, m *modelSubject) subject { return lateIsLost{m} }},
		{name: "what is waiting gives nothing back", make: func(k kind, m *modelSubject) subject { return waitingIsLost{m} }},
		{name: "what is settled goes to the end of the line", earlier: true, make: func(k kind, m *modelSubject) subject { return &placeIsLost{modelSubject: m} }},
		{name: "charges are forgotten", earlier: true, make: func(k kind, m *modelSubject) subject { return noCharge{m} }},
		{name: "a pause keeps no request waiting", earlier: true, make: func(k kind, m *modelSubject) subject { return noPause{m} }},
		{name: "pauses do not end early", make: func(k kind, m *modelSubject) subject { return noResume{m} }},
		{name: "an overtaker", earlier: true, make: func(k kind, m *modelSubject) subject { return overtaker{m} }},
		{name: "a promise becomes later", earlier: true, make: func(k kind, m *modelSubject) subject { return &drift{modelSubject: m} }},
		{name: "a new rate moves waiting requests", earlier: true, make: func(k kind, m *modelSubject) subject { return mover{m} }},
		{name: "Retime leaves them", make: func(k kind, m *modelSubject) subject { return leaver{m} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := kinds(c.upfront)
			for i := range 200 {
				k := all[i%len(all)]
				j := newJudge(k, c.make(k, k.fake()))
				j.run(randomBytes(uint64(i)), returns|pauses|charges|rates)
				if c.earlier && j.early != "" || !c.earlier && len(j.late) > 0 {
					return
				}
			}
			t.Error("not found")
		})
	}
}

type lateIsLost struct{ *modelSubject }

func (s lateIsLost) settle(id, actual int) {
	if s.Times()[id] > float64(s.now) {
		s.Settle(id, actual)
	}
}

type waitingIsLost struct{ *modelSubject }

func (s waitingIsLost) settle(id, actual int) {
	if s.Times()[id] <= float64(s.now) {
		s.Settle(id, actual)
	}
}

// placeIsLost puts whoever is settled at less while waiting at the end of the line.
type placeIsLost struct {
	*modelSubject
	moved map[int]int
}

func (s *placeIsLost) settle(id, actual int) {
	if s.moved == nil {
		s.moved = map[int]int{}
	}
	if actual > 0 && s.Times()[id] > float64(s.now) {
		s.Settle(id, 0)
		s.moved[id], _, _ = s.Reserve(actual, math.Inf(1))
		return
	}
	s.Settle(id, actual)
}

func (s *placeIsLost) at(id int) time.Duration {
	if other, ok := s.moved[id]; ok {
		id = other
	}
	return s.modelSubject.at(id)
}

type noCharge struct{ *modelSubject }

func (s noCharge) settle(id, actual int) {
	if at, before := s.Times()[id], s.Clone(); at >= 0 {
		s.Settle(id, actual)
		if s.NextFree() > before.NextFree() {
			*s.Limiter = *before
		}
	}
}

type noPause struct{ *modelSubject }

func (s noPause) pause(time.Duration) {}

type noResume struct{ *modelSubject }

func (s noResume) resume() {}

type overtaker struct{ *modelSubject }

func (s overtaker) tryAcquire(n int) bool {
	return s.modelSubject.tryAcquire(n) || len(s.Waiting()) > 2
}

// drift forgets a microsecond with each operation.
type drift struct {
	*modelSubject
	asked time.Duration
}

func (s *drift) at(id int) time.Duration {
	at := s.modelSubject.at(id)
	if at > s.now {
		s.asked += time.Microsecond
		at += s.asked
	}
	return at
}

type mover struct{ *modelSubject }

func (s mover) setRate(rate float64) { s.Retime(rate) }

type leaver struct{ *modelSubject }

func (s leaver) retime(rate float64) { s.SetRate(rate) }
