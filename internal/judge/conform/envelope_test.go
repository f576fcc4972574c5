package conform

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

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
			n, violated, explained, worst := 2*queues(t), 0, 0, &Envelope{}
			shortest := ""
			for seed := range n {
				e := v.Run(t, randomProgram(uint64(i)<<32+uint64(seed)))
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
