package window

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var seed = flag.Uint64("seed", 0, "of the random sequences; 0: another one each time")

// Whatever is asked, given back, charged, paused and changed: what is promised, and all that can
// be seen, is at each step what the model works out from scratch.
func TestExactAgainstModel(t *testing.T) {
	first := *seed
	if first == 0 {
		first = rand.Uint64()
	}
	var run uint64
	defer func() { // play ends the test where it fails
		if t.Failed() {
			t.Logf("failed: -seed %d, run %d", first, run)
		}
	}()
	begin, steps := time.Now(), 0
	runs := scaled(1000)
	for run = range runs {
		random := rand.New(rand.NewPCG(first, run))
		script := make([]byte, 3+random.IntN(160))
		for j := range script {
			script[j] = byte(random.Uint32())
		}
		steps += len(script) / 2
		play(t, script)
	}
	t.Logf("seed %d: %d runs, about %d steps, %v", first, runs, steps, time.Since(begin).Round(time.Millisecond))
}

// scaled returns how many runs are enough, with -short.
func scaled(runs uint64) uint64 {
	if testing.Short() {
		return runs / 5
	}
	return runs
}

// FuzzExact plays the same from bytes that the fuzzer finds.
func FuzzExact(f *testing.F) {
	f.Add([]byte{0, 2, 9, 0, 0, 0, 1, 0, 2, 9, 0, 0, 0, 1})
	f.Add([]byte{1, 4, 4, 4, 0, 4, 0, 12, 3, 9, 0, 0, 8, 4, 12, 7, 7, 4})
	f.Add([]byte{2, 2, 9, 0, 2, 14, 120, 0, 0, 12, 5, 0, 0})
	f.Add([]byte{3, 3, 11, 0, 3, 0, 3, 15, 4, 0, 0, 15, 13, 4, 0, 15, 0, 0, 3})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 300 {
			return // the model takes the cube of it
		}
		play(t, script)
	})
}

// play plays a script: a byte for what to do, and one for how much. As long as
// nothing changed the rule or was charged, no stretch holds too much.
func play(t *testing.T, script []byte) {
	next := func() (b int) {
		if len(script) > 0 {
			b = int(script[0])
			script = script[1:]
		}
		return b
	}
	style, size, per := next(), 1+next()%7, int64(1+next()%12)
	r := newRun(t, size, per)
	ruled := true
	for len(script) > 0 {
		what, much := next()%26, next()
		if what >= 14 && what < 20 && style%3 != 0 { // a third of all runs has no changes, and is longer in the queue
			what %= 14
		}
		switch what {
		case 0, 1, 2, 3:
			r.reserve(1+much%(r.model.size+1), never/2)
		case 4:
			r.reserve(1, never/2)
		case 5:
			r.reserve(1+much%r.model.size, int64(much%17))
		case 6, 7:
			if much < 192 {
				r.take(1 + much%(r.model.size+1))
			} else {
				r.takeUpTo(1 + much%(2*r.model.size))
			}
		case 8, 9, 10, 11:
			r.giveBack(much, next())
		case 12, 13:
			r.advance(much % 5)
		case 14:
			if much < 128 {
				r.advance(much)
			} else if much < 160 {
				ruled = false
				r.charge(1 + much%(2*r.model.size))
			}
		case 15:
			if much < 128 {
				r.pause(much % 20)
			} else {
				r.stop(much % 20)
			}
		case 16:
			r.resume()
		case 17:
			ruled = false
			r.setPer(int64(much%14), false)
		case 18:
			ruled = false
			r.setPer(int64(much%14), true)
		case 19:
			ruled = false
			r.setPolicy(1+much%7, int64(much%14))
		case 20, 21, 22:
			ruled = false
			r.begin(much)
		case 23, 24:
			ruled = false
			r.end(much)
		case 25:
			if much < 60 {
				ruled = false
				r.restore(much % 8)
			}
		}
		if style&4 == 0 || what%2 == 0 { // else the ledger is not asked, and has to catch up later
			r.check(much)
		}
	}
	r.check(0)
	if ruled {
		r.checkRule(per)
	}
}

// checkRule looks at every stretch, when all are granted.
func (r *run) checkRule(per int64) {
	for r.model.waiting() {
		r.model.tick()
	}
	for _, last := range r.model.asked { // each stretch is fullest where it ends with a request
		sum := 0
		for _, a := range r.model.asked {
			if last.clock-per < a.clock && a.clock <= last.clock {
				sum += a.permits
			}
		}
		require.LessOrEqual(r, sum, r.model.size, "until %d: %+v", last.clock, r.model.asked)
	}
}
