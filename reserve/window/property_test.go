package window_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
)

// Through the whole engine, on the clock on the wall, with pauses: however time is
// cut, no stretch of per holds more than n of what was not cancelled.
func TestExactThroughTheEngine(t *testing.T) {
	seed := rand.Uint64()
	defer func() { t.Logf("seed %d", seed) }()
	begin, promised, pauses := time.Now(), 0, 0
	for run := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, run))
		n, per := 1+random.IntN(9), time.Duration(1+random.IntN(40))
		b := newBench(t, n, per)
		var held []*reserve.Reservation
		used := map[*reserve.Reservation]int{}
		for range 200 {
			switch random.IntN(8) {
			case 0, 1, 2:
				r, err := b.Reserve(ctx, 1+random.IntN(n))
				require.NoError(t, err)
				held = append(held, &r)
				used[&r] = r.Permits()
			case 3:
				if r, err := b.ReserveWithin(ctx, 1+random.IntN(n), 0); err == nil {
					held = append(held, &r)
					used[&r] = r.Permits()
				}
			case 4, 5:
				if len(held) > 0 {
					i := random.IntN(len(held))
					r := held[i]
					held = append(held[:i], held[i+1:]...)
					used[r] = random.IntN(r.Permits() + 1)
					r.Settle(used[r])
				}
			case 6:
				b.Advance(time.Duration(random.IntN(20)))
			case 7:
				if random.IntN(4) == 0 {
					pauses++
					b.PauseUntil(b.Now().Add(time.Duration(random.IntN(30))))
				}
			}
		}
		promised += len(used)
		for last := range used {
			sum := 0
			for r, permits := range used {
				if at := r.At(); !at.After(last.At()) && at.After(last.At().Add(-per)) {
					sum += permits
				}
			}
			require.LessOrEqual(t, sum, n, "run %d: until %v", run, last.At())
		}
	}
	t.Logf("300 runs, %d promises, %d pauses, %v", promised, pauses, time.Since(begin).Round(time.Millisecond))
}
