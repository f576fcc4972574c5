package matrix

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/judge/limitertest"
)

// bounds are what a kind of server must not exceed: time over the ideal, by client, in the order of
// [Clients]; 0: none. And the share of calls that may be refused, of those of an adaptive client at
// 50/s.
var bounds = map[string]struct {
	took   [7]float64
	wasted float64
}{
	"token bucket, Retry-After":           {[7]float64{1.03, 1.15, 1.17, 1.03, 1.06, 0, 1.10}, 0.017},
	"token bucket, bare 429":              {[7]float64{1.03, 1.12, 1.15, 1.03, 1.12, 0, 1.15}, 0.017},
	"fixed windows, GitHub's headers":     {[7]float64{1.10, 1.12, 1.12, 1.10, 1.12, 0, 1.12}, 0.01},
	"sliding log, Retry-After":            {[7]float64{1.12, 1.13, 1.32, 1.05, 1.15, 0, 1.22}, 0.075},
	"falls to a third, comes back":        {[7]float64{1.13, 1.30, 1.40, 1.05, 1.23, 0, 1.20}, 0.05},
	"requests and tokens, bucket headers": {[7]float64{1.04, 1.06, 1.1, 1.04, 1.06, 0, 1.1}, 0.005},
	"n in flight, 503":                    {[7]float64{1.15, 1.33, 1.35, 1.15, 1.33, 1.10, 1.35}, 0.03},
	"n in flight, bare 429":               {[7]float64{1.15, 1.25, 1.35, 1.15, 1.25, 1.10, 1.35}, 0.03},
	"slower and slower":                   {[7]float64{1.05, 1.05, 1.10, 1.05, 1.05, 0, 1.10}, 0.01},
	"the draft's headers":                 {[7]float64{1.03, 1.05, 1.05, 1.03, 1.05, 0, 1.05}, 0},
	"hostile headers":                     {[7]float64{1.03, 1.12, 1.15, 1.03, 1.12, 0, 1.15}, 0.03},
}

// Each client finishes at each kind of server in the time that it has, and without a herd, at 5/s and
// at 50/s. With FIGURES in the environment it prints figures, at 500/s, too: medians of RUNS.
func TestMatrix(t *testing.T) {
	rates := []float64{5, 50}
	if limitertest.Slower > 1 {
		rates = rates[1:]
	}
	if os.Getenv("FIGURES") != "" {
		rates = append(rates, 500)
	}
	for _, rate := range rates {
		for _, k := range Kinds {
			want, ok := bounds[k.Name]
			require.True(t, ok, k.Name)
			for i, c := range Clients {
				if c.Fits != nil && !c.Fits(k) {
					continue
				}
				name := fmt.Sprintf("%v per second/%s/%s", rate, k.Name, c.Name)
				t.Run(name, func(t *testing.T) {
					o := Median(t, k, c, At(rate, 0), runs())
					if os.Getenv("FIGURES") != "" {
						asMeasured(t, name, o)
						return
					}
					require.True(t, o.Finished(), "%+v", o)
					if rate == 50 { // of few calls, one more that is refused is more than that
						asMeasured(t, name, o)
					}
					require.LessOrEqual(t, o.Took, want.took[i], "%+v", o)
					if k.Name != "slower and slower" { // for seconds it does not say that it is too much
						herd := 6.
						if k.Name == "fixed windows, GitHub's headers" && strings.HasPrefix(c.Name, "unknown") {
							herd = 8 // a window that is used alone is spent at once
						}
						require.LessOrEqual(t, o.Herd, herd, "%+v", o)
					}
					if rate == 50 && c.Adaptive {
						require.LessOrEqual(t, o.Wasted, want.wasted, "%+v", o)
					}
					if rate == 5 && strings.HasPrefix(k.Name, "token bucket") { // a retry is not sent behind calls that came later
						require.LessOrEqual(t, o.Longest, 2*o.Median+1, "%+v", o)
					}
				})
			}
		}
	}
}
