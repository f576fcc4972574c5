package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadTrace(t *testing.T) {
	name := filepath.Join(t.TempDir(), "trace.csv")
	write := func(text string) { require.NoError(t, os.WriteFile(name, []byte(text), 0o600)) }
	write("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:04.1000000,110,27\n2023-11-16 18:17:03.9799600,4808,10\n")
	calls, err := readTrace(name)
	require.NoError(t, err)
	require.Equal(t, []call{{0, 4808, 10}, {120040 * time.Microsecond, 110, 27}}, calls)

	write("at,prompt,reply\n3,1,2\n4.5,3,4\n")
	calls, err = readTrace(name)
	require.NoError(t, err)
	require.Equal(t, []call{{0, 1, 2}, {1500 * time.Millisecond, 3, 4}}, calls)

	write("milliseconds,context,generated\n3,1,2\n45,3,4\n")
	calls, err = readTrace(name)
	require.NoError(t, err)
	require.Equal(t, []call{{0, 1, 2}, {42 * time.Millisecond, 3, 4}}, calls)

	for text, want := range map[string]string{
		"":                  "there is no call in it",
		"a,b,c\nsoon,1,2\n": `line 2: "soon" is no time`,
		"a,b,c\n1,-1,2\n":   `"-1" is no number of tokens`,
		"a,b\n1,2\n":        "there are 2 columns",
	} {
		write(text)
		_, err = readTrace(name)
		require.ErrorContains(t, err, want)
	}
}

func TestOptimum(t *testing.T) {
	s := time.Second
	calls := []call{{0, 50, 10}, {s, 40, 0}, {2 * s, 30, 0}, {3 * s, 30, 0}, {200 * s, 1, 0}}
	require.Equal(t, 200*s, optimum(calls, 10, 100))
	require.Equal(t, 60*s, optimum(calls[:4], 10, 100))
	require.Equal(t, 61*s, optimum(calls[:4], 2, 1000))
	require.Equal(t, 3*s, optimum(calls[:4], 4, 1000))
}

// Each client makes its calls; pace's, whose estimates are not too low, are never refused.
func TestReplay(t *testing.T) {
	var calls []call
	for i := range 100 {
		calls = append(calls, call{time.Duration(i) * 100 * time.Millisecond, 100 + i, 20 + i%7})
	}
	best := optimum(calls, 60, 8000)
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			o, err := replay(t, c, calls, 60, 8000)
			require.NoError(t, err)
			require.Equal(t, len(calls), o.counts.Answered+o.failed)
			require.LessOrEqual(t, o.counts.MostTokens, 8000)
			if c.name[:4] == "pace" && c.name != "pace, sizes taken for half as much" {
				require.Zero(t, o.counts.Refused)
				require.Less(t, o.last, best*21/20)
			}
		})
	}
}
