package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestXTimesOwnTests(t *testing.T) {
	var table bytes.Buffer
	ok, err := run(&table)
	require.NoError(t, err)
	require.True(t, ok, table.String())
	require.Regexp(t, `\| TestSimpleReserve +\| passes `, table.String())
}

func TestDiffers(t *testing.T) {
	require.Equal(t, "lim.reserveN(t0, 3, 1s) = (t0, true) want (t0, false)", // granted, not refused
		differs("    xtime_test.go:1: lim.reserveN(t0, 3, 1s) = (t0, true) want (t0, false)\n"))
	require.Equal(t, "numOK = 6, want 5", differs("    xtime_test.go:262: numOK = 6, want 5\n"))
	require.Equal(t, []string{"2 asked for at t2: t5, not t4", "step 5: TokensAt 0, not 1"}, differences([]string{
		"=== RUN   TestA\n",
		"    xtime_test.go:31: lim.reserveN(t2, 2, 256h) = (t5, true) want (t4, true)\n",
		"    xtime_test.go:32: step 5: lim.TokensAt(2026-11-21 m=+0.1) = 0 want 1\n",
		"--- FAIL: TestA (0.00s)\n",
	}))
}

func TestJudge(t *testing.T) {
	known := map[string]difference{"TestA": {"later; never", "because"}}
	a, b := test{"TestA", false, []string{"later", "never"}}, test{"TestB", true, nil}
	rows, ok := judge([]test{a, b}, known)
	require.True(t, ok)
	require.Equal(t, [][]string{{"TestA", "differs", "later; never", "because"}, {"TestB", "passes", "", ""}}, rows)

	for name, tests := range map[string][]test{
		"differs otherwise":         {{"TestA", false, []string{"sooner"}}, b},
		"passes":                    {{"TestA", true, nil}, b},
		"another one differs":       {a, {"TestB", false, []string{"sooner"}}},
		"a known one is not there":  {b},
		"there are no tests at all": nil,
	} {
		_, ok := judge(tests, known)
		require.False(t, ok, name)
	}
}
