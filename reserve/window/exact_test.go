package window

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"
)

var seed = flag.Uint64("seed", 0, "of the random sequences; 0: another one each time")

// Whatever is asked, cancelled, settled and changed: each request gets the earliest
// time that the rule allows, never an earlier one, and never a later one.
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
	const runs uint64 = 1500
	for run = range runs {
		random := rand.New(rand.NewPCG(first, run))
		script := make([]byte, 2+random.IntN(240))
		for j := range script {
			script[j] = byte(random.Uint32())
		}
		steps += len(script) / 2
		play(t, script)
	}
	t.Logf("seed %d: %d runs, about %d steps, %v", first, runs, steps, time.Since(begin).Round(time.Millisecond))
}

// FuzzExact plays the same from bytes that the fuzzer finds.
func FuzzExact(f *testing.F) {
	f.Add([]byte{2, 9, 0, 0, 0, 1, 0, 2, 9, 0, 0, 0, 1})                     // cancel in the queue, reserve again
	f.Add([]byte{4, 4, 4, 0, 4, 0, 12, 3, 9, 0, 0, 8, 4, 12, 7, 7, 4})       // cancel when due
	f.Add([]byte{2, 9, 0, 2, 14, 120, 0, 0, 12, 5, 0, 0})                    // charge past the limit
	f.Add([]byte{3, 11, 0, 3, 0, 3, 15, 4, 0, 0, 15, 13, 4, 0, 15, 0, 0, 3}) // rates, and none
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 400 {
			return // the model takes the square of it
		}
		play(t, script)
	})
}
