package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Only tests, benchmarks and the judges themselves import internal/judge: nothing that a program runs.
func TestNothingThatRunsImportsAJudge(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	seen := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		switch {
		case d.IsDir() && (name == "bench" || name == "internal/judge" || strings.HasPrefix(d.Name(), ".") && path != root):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		seen++
		for _, of := range file.Imports {
			require.NotContains(t, of.Path.Value, "nextfree/pace/internal/judge", name)
		}
		return nil
	}))
	require.Greater(t, seen, 200)
}
