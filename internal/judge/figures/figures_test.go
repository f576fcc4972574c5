package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestComplexity(t *testing.T) {
	for source, want := range map[string]int{
		`func f() {}`: 0,
		`func f() { if a { } else if b { } else { } }`:                   3,
		`func f() { for { if a { for range b { } } } }`:                  1 + 2 + 3,
		`func f() { if a && b && c || d { } }`:                           3,
		`func f() { if a || (b && c) { } }`:                              3,
		`func f() { switch a { case 1: if b { } } }`:                     1 + 2,
		`func f() { g(func() { if a { } }) }`:                            2,
		`func f() { f(); loop: for { continue loop } }`:                  1 + 1 + 1,
		`func f() { select { case <-a: case <-b: if c { return } } }`:    1 + 2,
		`func f() { if a { return } ; if b { return } ; return a && b }`: 3,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "f.go", "package p\n"+source, 0)
		require.NoError(t, err)
		require.Equal(t, want, complexity(file.Decls[0].(*ast.FuncDecl)), source)
	}
}

func TestFigures(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	write("a.go", `// Package p has two words: is it?
package p

//go:generate nothing

// F does it.
func F() {} // at once

type T struct{ X int }

func (t *T) M() {}
func (t *T) m() {}

type hidden int

func (hidden) M() {}

const (
	A, b = 1, 2 /* a comment
	that goes on */
)
`)
	write("a_test.go", "package p\nfunc G() {}\n")
	write("internal/b.go", "package b\n\nfunc H() {}\n")
	write("bench/c.go", "package c\n\nfunc I() {}\n")
	f, err := measure(root)
	require.NoError(t, err)
	require.Equal(t, &figures{files: 2, code: 10 + 2, words: 7 + 3, beside: 2 + 5, names: 3, methods: 1}, f)
}
