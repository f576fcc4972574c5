package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRead(t *testing.T) {
	r, err := read([]byte(`{"Action":"start","Package":"a"}
{"Action":"pass","Package":"a","Test":"TestA"}
{"Action":"fail","Package":"b","Test":"TestA/x"}
{"Action":"fail","Package":"b"}
`))
	require.NoError(t, err)
	require.Equal(t, results{"a TestA": "pass", "b TestA/x": "fail"}, r)
	require.Equal(t, 1, r.count("pass"))
	_, err = read([]byte("go: no such tool"))
	require.Error(t, err)
}

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

func TestRename(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a"), 0o700))
	for name, text := range map[string]string{"x.go": "import " + before, "y.go": "import \"time\""} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a", name), []byte(text), 0o600))
	}
	files, err := program{packages: []string{"./a"}}.rename(dir)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "a", "x.go")}, files)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.Equal(t, "import "+after, string(text))
}
