package conform

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/judge/model"
	"github.com/nextfree/pace/reserve"
)

// seeds are programs that reach each operation, and random ones.
func seeds(f *testing.F) {
	f.Helper()
	for i, p := range [][]byte{
		{},
		{0, 0, 0, 0, 0, 0, 7, 1, 0, 0},       // in the middle
		{0, 0, 0, 0, 0, 0, 7, 2, 7, 1, 7, 0}, // the newest first
		{0, 0, 0, 0, 0, 0, 7, 0, 7, 1, 7, 2}, // the oldest first
		{0, 3, 0, 2, 0, 0, 15, 4, 7, 0, 7, 1, 17, 20},     // after its time
		{0, 7, 0, 3, 0, 1, 10, 17, 15, 31, 10, 2, 17, 60}, // less
		{0, 7, 0, 0, 7, 0, 13, 90, 0, 1, 15, 9, 13, 4, 18, 0, 7, 1},
		{0, 7, 0, 7, 0, 0, 14, 5, 7, 1, 0, 1, 14, 64, 15, 9, 7, 0, 17, 99},
		{4, 39, 0, 0, 12, 9, 12, 17, 0, 3, 17, 200, 12, 12, 0, 0}, // more
		{17, 255, 0, 1, 0, 2, 5, 3, 5, 255, 6, 1, 6, 0, 18, 2, 7, 1, 6, 3},
	} {
		for which := range 72 {
			if which < 12 || which%10 == i {
				f.Add(byte(which), p)
			}
		}
	}
	for seed := range uint64(100) {
		f.Add(byte(seed), randomBytes(seed+1<<32))
	}
}

// fuzz runs a program on one of the kinds. That some slots in a thousand may be later is for TestRandomQueues.
func fuzz(f *testing.F, kinds []kind, with features) {
	seeds(f)
	f.Fuzz(func(t *testing.T, which byte, program []byte) {
		j := kinds[int(which)%len(kinds)].judge(t)
		j.run(program, with)
		if j.early != "" {
			t.Fatal(j.trace() + j.early)
		}
	})
}

func FuzzBursty(f *testing.F)  { fuzz(f, kinds(false), returns|charges|pauses|rates) }
func FuzzUpfront(f *testing.F) { fuzz(f, kinds(true), returns|charges|pauses|rates) }
func FuzzWarmUp(f *testing.F)  { fuzz(f, warming(false), returns|charges|pauses|rates) }

func FuzzWarmUpUpfront(f *testing.F) { fuzz(f, warming(true), returns|charges|pauses|rates) }

// Whoever is not yet due can be taken back, in any order: then the limiter is as one that has
// never seen them. This needs no model: a second limiter is one.
func FuzzUndo(f *testing.F) {
	seeds(f)
	all := append(append(kinds(false), kinds(true)...), warming(false)...)
	f.Fuzz(func(t *testing.T, which byte, program []byte) {
		k := all[int(which)%len(all)]
		undo(t, k, k.real(t), k.real(t), program[:min(len(program), 300)])
	})
}

func undo(t *testing.T, k kind, s, twin *realSubject, program []byte) {
	step := time.Duration(k.interval()*float64(k.unit)/16) + 1
	reserve := func(s *realSubject, n int) int {
		id, _, _ := s.reserve(n*k.unit, reserve.Forever)
		return id
	}
	half := len(program) / 4 * 2
	for _, b := range program[:half] { // what both see
		for _, s := range []*realSubject{s, twin} {
			if b < 160 {
				reserve(s, 1+int(b%8))
			} else {
				s.advance(time.Duration(b%32) * step)
			}
		}
	}
	reserve(s, 60) // so that those behind it wait
	reserve(twin, 60)
	var pending []int
	cancel := func(i int) {
		s.settle(pending[i], 0)
		pending = append(pending[:i], pending[i+1:]...)
	}
	for _, b := range program[half:] {
		switch {
		case b < 128:
			pending = append(pending, reserve(s, 1+int(b%8)))
			if s.at(pending[len(pending)-1]) <= s.clock.Since(s.begin) { // it may go, and is the newest
				cancel(len(pending) - 1)
			}
		case len(pending) > 0:
			cancel(int(b) % len(pending))
		}
	}
	for len(pending) > 0 {
		cancel(len(program) * 7 % len(pending))
	}
	for i := range 3 {
		if got, want := s.stored(), twin.stored(); math.Abs(got-want) > 1e-6+float64(2+len(program)/8)*1e-9*k.rate { // so many nanoseconds' worth
			t.Fatalf("%v: step %d: stored %v, the other %v", k, i, got, want)
		}
		if got, want := s.nextFree(), twin.nextFree(); (got - want).Abs() > time.Duration(3+len(program)/8) { // rounding
			t.Fatalf("%v: step %d: next free %v, the other's %v", k, i, got, want)
		}
		for _, s := range []*realSubject{s, twin} {
			reserve(s, 2)
			s.advance(7 * step)
		}
	}
}

// All of two: the times are the later ones, and where one refuses, the other is as if it had never
// been asked.
func FuzzAll(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, which byte, program []byte) {
		all := append(kinds(which&1 != 0)[:24], kinds(which&2 != 0)[:24]...) // exact ones
		clock := clockwork.NewFakeClockAt(epoch)
		var pair [2]*judge
		for i := range pair {
			k := all[int(which)*(1+6*i)%len(all)]
			pair[i] = newJudge(k, k.realOn(t, clock))
		}
		allOfTwo(t, clock, pair, program)
	})
}

func allOfTwo(t *testing.T, clock *clockwork.FakeClock, pair [2]*judge, program []byte) {
	limiters := [2]*realSubject{pair[0].subject.(*realSubject), pair[1].subject.(*realSubject)}
	both := reserve.All(limiters[0].limiter, limiters[1].limiter)
	type held struct {
		r      *reserve.Reservation
		models [2]int
	}
	var bundles []held
	unit := time.Duration(pair[0].kind.interval()) / 16
	for steps := 0; len(program) >= 2 && steps < 80; steps++ {
		op, arg := program[0]%10, int(program[1])
		program = program[2:]
		j := pair[arg&1]
		switch op {
		case 0, 1: // one of them is kept busy
			j.reserve(1+arg%5, reserve.Forever)
		case 2, 3:
			if open := j.open(); len(open) > 0 {
				j.settle(open[arg%len(open)], 0)
			}
		case 4, 5, 6:
			n, maxWait := 1+arg%4, time.Duration(arg)*unit
			r, err := both.ReserveWithin(context.Background(), n, maxWait)
			ids, want, ok := [2]int{}, 0.0, true
			copies := [2]*model.Limiter{pair[0].model.Clone(), pair[1].model.Clone()}
			for i, m := range copies {
				var wait float64
				var granted bool
				ids[i], wait, granted = m.Reserve(n, float64(maxWait))
				want, ok = max(want, wait), ok && granted
			}
			for _, j := range pair {
				j.note("all %d within %v: %v", n, maxWait, err)
			}
			if refused := (*reserve.WaitError)(nil); ok != (err == nil) || err != nil && !errors.As(err, &refused) {
				t.Fatalf("%s%sall of %d within %v: %v, the models %v", pair[0].trace(), pair[1].trace(), n, maxWait, err, ok)
			}
			if ok {
				pair[0].model, pair[1].model = copies[0], copies[1]
				if float64(r.Delay()) != want {
					t.Fatalf("%s%sall wait for %v, the models for %v", pair[0].trace(), pair[1].trace(), r.Delay(), time.Duration(want))
				}
				bundles = append(bundles, held{&r, ids})
			}
		case 7:
			if len(bundles) > 0 {
				b, actual := bundles[arg%len(bundles)], arg%6
				b.r.Settle(actual)
				for i, j := range pair {
					j.note("settle a bundle at %d", actual)
					j.model.Settle(b.models[i], actual)
				}
			}
		default:
			d := time.Duration(arg%64) * unit
			clock.Advance(d)
			for _, j := range pair {
				j.note("advance %v", d)
				j.now += d
				j.model.Advance(float64(d))
			}
		}
		for _, j := range pair {
			if j.look(); j.early != "" {
				t.Fatal(j.trace() + j.early)
			}
			if len(j.late) > 0 {
				if j.kind.upfront {
					return // a few may be: see TestRandomQueues
				}
				t.Fatal(j.trace() + j.late[0].what)
			}
		}
	}
}
