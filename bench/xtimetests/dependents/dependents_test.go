package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJudge(t *testing.T) {
	p := program{module: "m", kind: "k", packages: []string{"./a", "./b"}}
	both := results{"a TestA": "pass", "a TestB": "fail"}
	row, ok := judge(p, both, both)
	require.True(t, ok)
	require.Equal(t, []string{"m", "k", "./a ./b", "1", "1", "nothing; 1 fail in both"}, row)
	row, ok = judge(p, both, results{"a TestA": "pass", "a TestB": "pass"})
	require.True(t, ok)
	require.Equal(t, "nothing", row[5])
	row, ok = judge(p, both, results{"a TestA": "fail", "a TestB": "pass"})
	require.False(t, ok)
	require.Equal(t, "a TestA", row[5])
	_, ok = judge(p, both, results{"a TestB": "pass"}) // it did not run
	require.False(t, ok)
	_, ok = judge(p, results{}, results{})
	require.False(t, ok)
}
