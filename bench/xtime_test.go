package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// tolerance is how far pace's times may be from x/time/rate's, which rounds to
// nanoseconds and keeps its tokens in a float64.
const tolerance = 2 * time.Microsecond

// upfrontLimiters returns a limiter of pace's and one of x/time/rate's that promise
// the same times, and the clock of both.
func upfrontLimiters(t *testing.T, permitsPerSecond float64, burst int) (
	*reserve.Limiter, *rate.Limiter, *clockwork.FakeClock) {
	clock := clockwork.NewFakeClock()
	l, err := pace.NewBursty(permitsPerSecond, pace.WithCapacity(float64(burst)), reserve.WithStored(float64(burst)),
		reserve.PayUpfront(), reserve.WithClock(clock))
	require.NoError(t, err)
	return l, rate.NewLimiter(rate.Limit(permitsPerSecond), burst), clock
}

// requireSameTime reserves n permits of both and compares the times. x/time/rate
// refuses more than its burst at once, so it is asked for them in parts, the last of
// which is ready when all of them are.
func requireSameTime(t *testing.T, l *reserve.Limiter, x *rate.Limiter, n int, now time.Time, step int) {
	r, err := l.Reserve(context.Background(), n)
	require.NoError(t, err)
	var want time.Time
	for left := n; left > 0; left -= x.Burst() {
		part := x.ReserveN(now, min(left, x.Burst()))
		require.True(t, part.OK())
		want = now.Add(part.DelayFrom(now))
	}
	if apart := r.At().Sub(want).Abs(); apart > tolerance {
		t.Fatalf("step %d: %d permits after %v by pace, after %v by x/time/rate: %v apart",
			step, n, r.At().Sub(now), want.Sub(now), apart)
	}
}

func TestUpfrontAgreesWithXTime(t *testing.T) {
	const sequences, steps = 300, 200
	for seed := range uint64(sequences) {
		random := rand.New(rand.NewPCG(seed, 0))
		permitsPerSecond := math.Pow(10, -1+7*random.Float64()) // 0.1 to 1e6
		burst := 1
		if seed%4 > 0 {
			burst += int(math.Pow(10, 4*random.Float64())) // up to 10,001
		}
		load := 2 * random.Float64() // 1: as much is asked for as comes in
		t.Run(fmt.Sprintf("seed=%d,rate=%.3g,burst=%d,load=%.2f", seed, permitsPerSecond, burst, load), func(t *testing.T) {
			l, x, clock := upfrontLimiters(t, permitsPerSecond, burst)
			for step := range steps {
				n := 1 + random.IntN(burst)
				if random.IntN(10) == 0 {
					n = 1 + random.IntN(3*burst)
				}
				requireSameTime(t, l, x, n, clock.Now(), step)
				if random.IntN(3) > 0 { // else the next one is at the same moment
					mean := 1.5 * float64(n) / permitsPerSecond / (load + 0.01)
					clock.Advance(time.Duration(random.ExpFloat64() * mean * 1e9))
				}
			}
		})
	}
}
