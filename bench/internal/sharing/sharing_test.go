package sharing

import (
	"bytes"
	"image/png"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The processes that a test starts are this program.
func TestMain(m *testing.M) {
	if !Worker() {
		os.Exit(m.Run())
	}
}

// Three processes, one of which is killed, never go beyond the limit together.
func TestShare(t *testing.T) {
	e := Experiment{Processes: 3, Callers: 2, Rate: 100, Lasts: time.Second, Kill: true, Dir: t.TempDir()}
	calls, begin, err := watch(t.Context(), e)
	require.NoError(t, err)
	require.NotEmpty(t, calls)
	j := judge(e, calls)
	require.LessOrEqual(t, j.over, slack)
	require.Len(t, j.rows, 4)
	var b bytes.Buffer
	require.NoError(t, draw(&b, e, begin, calls))
	_, err = png.Decode(&b)
	require.NoError(t, err)
}

func at(ms ...int) (calls []call) {
	for _, at := range ms {
		calls = append(calls, call{at: int64(at) * 1e6, gone: int64(at+3) * 1e6})
	}
	return calls
}

func TestJudge(t *testing.T) {
	e := Experiment{Processes: 1, Rate: 100, Lasts: time.Second}
	even := judge(e, at(30, 0, 20, 10))
	require.Zero(t, even.over)
	require.InDelta(t, 1, even.used, 1e-9)
	require.True(t, strings.HasPrefix(even.verdict(), "No stretch of time had a call more"))
	require.Contains(t, even.verdict(), "3ms later")
	require.InDelta(t, 0.5, judge(e, at(0, 20, 25, 60)).over, 1e-9, "5 ms are half a call")
	require.InDelta(t, 1, over(100, at(0, 50, 55, 60)), 1e-9, "three in 10 ms")
	require.Contains(t, judge(e, at(0, 1)).verdict(), "0.90 calls more")
}

func TestStack(t *testing.T) {
	e := Experiment{Processes: 2, Rate: 200, Lasts: 2 * step}
	calls := []call{{process: 0, at: 1000}, {process: 1, at: 1001}, {process: 1, at: 1000 + int64(time.Hour)}}
	require.Equal(t, [][]float64{{2.5, 0}, {5, 0}}, stack(e, 1000, calls))
	early := []call{{process: 0, at: 1000 + int64(step) - 1}} // a call at the end of a bin, a nanosecond early
	require.Equal(t, [][]float64{{0, 2.5}, {0, 2.5}}, stack(e, 1000, early))
}
