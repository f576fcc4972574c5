package conform

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// programs is how many random programs a variant is run with: PACE_QUEUES of the environment, for
// the long run, or a number that takes a few seconds.
func programs(t *testing.T) int {
	if text := os.Getenv("PACE_QUEUES"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		return n
	}
	return 60
}

func randomProgram(seed uint64) []byte {
	random := rand.New(rand.NewPCG(7, seed))
	p := make([]byte, 16+random.IntN(64)&^1)
	for i := range p {
		p[i] = byte(random.Uint32())
	}
	return p
}

func TestEnvelope(t *testing.T) {
	for i, v := range Variants() {
		t.Run(v.Name, func(t *testing.T) {
			n, violated, explained, worst := programs(t), 0, 0, &Envelope{}
			shortest := ""
			for seed := range n {
				e := v.Run(t, randomProgram(uint64(i<<32+seed)))
				if e.Explained > 0 {
					explained++
				}
				if e.Excess > 0 {
					violated++
					if shortest == "" || len(e.String()) < len(shortest) {
						shortest = e.String()
					}
				}
				if e.Excess > worst.Excess {
					worst = e
				}
			}
			t.Logf("%d programs: %d beyond the envelope, by at most %.3f; in %d a promise at a higher rate was kept",
				n, violated, worst.Excess, explained)
			require.Zero(t, violated, shortest)
		})
	}
}
