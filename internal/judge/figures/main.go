// Command figures prints how large the library is: `make figures`. Nobody is stopped by what it prints. It is for who
// asks whether the library has grown.
//
// The library is the root module without tests, without what only tests use (internal/judge, and servers for tests),
// without bench and without adapters (reserve/plug, and stores that are modules of their own).
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// apart are folders that are no part of the library: for tests, for benchmarks, and modules of their own.
var apart = []string{
	"bench", "internal/judge", "internal/redis", "internal/server", "internal/watchdog", "reserve/plug",
	"reserve/shared/goredis", "reserve/shared/natskv", "reserve/shared/postgres", "reserve/shared/internal/storetest",
}

const (
	hard = 15  // a cognitive complexity
	long = 300 // lines of a file
)

func main() {
	log.SetFlags(0)
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	f, err := measure(root)
	if err != nil {
		log.Fatal(err)
	}
	f.print()
}

// figures are the library's.
type figures struct {
	files, code    int
	words, beside  int // of comments, on lines of their own and behind code
	names, methods int
	long           []figure // files
	hard           []figure // functions
}

type figure struct {
	name string
	n    int
}

func measure(root string) (*figures, error) {
	f := new(figures)
	return f, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case d.IsDir() && (slices.Contains(apart, name) || name != "." && strings.HasPrefix(d.Name(), ".") ||
			d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		return f.add(path, name)
	})
}

// add measures a file.
func (f *figures) add(path, name string) error {
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, source, parser.ParseComments)
	if err != nil {
		return err
	}
	f.files++
	f.code += linesOfCode(set, file, source)
	words, beside := wordsOf(set, file, source)
	f.words, f.beside = f.words+words, f.beside+beside
	if n := strings.Count(string(source), "\n"); n > long {
		f.long = append(f.long, figure{name, n})
	}
	for _, decl := range file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok {
			if n := complexity(fn); n > hard {
				f.hard = append(f.hard, figure{name + " " + nameOf(fn), n})
			}
		}
	}
	if !strings.Contains("/"+name, "/internal/") && file.Name.Name != "main" {
		f.exported(file)
	}
	return nil
}

// linesOfCode counts the lines that hold more than a comment.
func linesOfCode(set *token.FileSet, file *ast.File, source []byte) int {
	bare := slices.Clone(source)
	for _, group := range file.Comments {
		for _, c := range group.List {
			for i := set.Position(c.Pos()).Offset; i < set.Position(c.End()).Offset; i++ {
				if bare[i] != '\n' {
					bare[i] = ' '
				}
			}
		}
	}
	n := 0
	for line := range strings.Lines(string(bare)) {
		if strings.TrimSpace(line) != "" {
			n++
		}
	}
	return n
}

// wordsOf counts the words of a file's comments on lines of their own, and behind code.
func wordsOf(set *token.FileSet, file *ast.File, source []byte) (lines, beside int) {
	for _, group := range file.Comments {
		n := 0
		for word := range strings.FieldsSeq(group.Text()) { // without directives
			if strings.ContainsFunc(word, func(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }) {
				n++
			}
		}
		before := source[:set.Position(group.Pos()).Offset]
		if bytes.HasSuffix(bytes.TrimRight(before, "\t "), []byte("\n")) || len(before) == 0 {
			lines += n
		} else {
			beside += n
		}
	}
	return lines, beside
}

// exported counts the exported names and the exported methods of a file.
func (f *figures) exported(file *ast.File) {
	count := func(name *ast.Ident, of *int) {
		if name.IsExported() {
			*of++
		}
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			switch receiver, _, _ := strings.Cut(nameOf(d), "."); {
			case d.Recv == nil:
				count(d.Name, &f.names)
			case token.IsExported(receiver):
				count(d.Name, &f.methods)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					count(s.Name, &f.names)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						count(name, &f.names)
					}
				}
			}
		}
	}
}

func (f *figures) print() {
	fmt.Printf("%7d lines of code in %d files, without comments and blank lines\n", f.code, f.files)
	fmt.Printf("%7d words of comments on lines of their own, and %d behind code\n", f.words, f.beside)
	fmt.Printf("%7d exported names, and %d methods of exported types\n", f.names, f.methods)
	list(f.hard, fmt.Sprintf("functions with a cognitive complexity over %d", hard))
	list(f.long, fmt.Sprintf("files over %d lines", long))
}

func list(all []figure, what string) {
	slices.SortFunc(all, func(a, b figure) int { return cmp.Or(b.n-a.n, strings.Compare(a.name, b.name)) })
	fmt.Printf("%7d %s\n", len(all), what)
	for _, one := range all {
		fmt.Printf("%14d %s\n", one.n, one.name)
	}
}

// nameOf returns a function's name, or Type.Method.
func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	for {
		switch of := t.(type) {
		case *ast.StarExpr:
			t = of.X
		case *ast.IndexExpr:
			t = of.X
		case *ast.IndexListExpr:
			t = of.X
		case *ast.Ident:
			return of.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}
