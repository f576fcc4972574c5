package matrix

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Ten programs, of which each believes that the 503s are not its doing, refuse each other's calls: they find out. With
// these seeds a sixth and a quarter of the calls was refused before, and a few programs had nearly all.
func TestCrowdBeforeABusyServer(t *testing.T) {
	seeds := []uint64{4, 7}
	if raced {
		seeds = seeds[:1]
	}
	for _, seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			<-time.After(time.Until(day))
			s := Setting{Rate: 100, Burst: 20, Seed: seed, Latency: [2]time.Duration{20 * ms, 100 * ms}}
			refused, jain := busyCrowd(Unknown, s)
			t.Logf("refused %.3f, Jain %.2f", refused, jain)
			require.LessOrEqual(t, refused, 0.1)
			require.GreaterOrEqual(t, jain, 0.5)
		})
	}
}

// busyCrowd returns the share of refused calls, and Jain's index of what ten programs got from the second minute on.
func busyCrowd(c Client, s Setting) (refused, jain float64) {
	random, programs := rand.New(rand.NewPCG(s.Seed, 7)), make([]Neighbour, 10)
	for i := range programs {
		programs[i] = Neighbour{Client: c, Slots: 8, From: time.Duration(random.Int64N(int64(5 * time.Second)))}
	}
	sum, squares, seen, got := 0., 0., 0., make([]float64, len(programs))
	callers(Kind{New: busy(newBucket(""))}, programs, s, 0, 4*time.Minute, func(i int, at time.Duration, status int) {
		seen++
		if status != http.StatusOK {
			refused++
		} else if at >= time.Minute {
			got[i]++
		}
	})
	for _, n := range got {
		sum, squares = sum+n, squares+n*n
	}
	return refused / seen, sum * sum / float64(len(got)) / squares
}
