package adapt

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Programs that hear what is left of a quota of 500 in 10 s become equally fast, whatever they began
// with; a greedy one at the whole rate leaves a fifth, and one that is alone has all.
func TestFair(t *testing.T) {
	parts := func(greedy bool, rates ...float64) []float64 {
		fairs, used := make([]fair, len(rates)), make([]float64, len(rates))
		for range 30 {
			left, until := 500., 10.
			for i := range used {
				used[i] = 0
			}
			for until > 0.05 && left > 1 {
				for i := range rates {
					owed := rates[i] * 0.05
					if left < owed {
						continue
					}
					left -= owed
					used[i] += owed
					fairs[i].say(left, owed)
					rates[i] = left / until * fairs[i].share()
					if greedy && i == 0 {
						rates[i] = 50
					}
				}
				until -= 0.05
			}
		}
		sum := 0.
		for _, u := range used {
			sum += u
		}
		for i := range used {
			used[i] /= sum
		}
		return used
	}
	require.InDeltaSlice(t, []float64{1}, parts(false, 20), 0.001)
	require.InDeltaSlice(t, []float64{0.5, 0.5}, parts(false, 49, 1), 0.03)
	require.InDeltaSlice(t, []float64{0.33, 0.33, 0.33}, parts(false, 40, 8, 1), 0.04)
	require.Greater(t, parts(true, 50, 1)[1], 0.2)
}
