package gotest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRead(t *testing.T) {
	results, err := read([]byte(`{"Action":"start","Package":"a"}
{"Action":"run","Package":"a","Test":"TestA"}
{"Action":"output","Package":"a","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"b","Test":"TestA","Output":"of another package\n"}
{"Action":"fail","Package":"a","Test":"TestA"}
{"Action":"pass","Package":"b","Test":"TestB/x"}
{"Action":"fail","Package":"a"}
`))
	require.NoError(t, err)
	require.Equal(t, []Result{
		{"a", "TestA", "fail", []string{"=== RUN   TestA\n"}}, {"b", "TestB/x", "pass", nil},
	}, results)

	_, err = read([]byte(`{"Action":"build-output","Output":"limiter.go:1: undefined"}` + "\n" + `{"Action":"fail"}`))
	require.ErrorContains(t, err, "undefined")
	_, err = read([]byte("go: no such tool"))
	require.Error(t, err)
}
