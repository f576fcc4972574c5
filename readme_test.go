package pace_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadme builds and vets the README's Go snippets in a module that requires pace, as a user's does, and runs
// those that are tests. The one that needs a client of Redis is compiled in reserve/shared/goredis.
func TestReadme(t *testing.T) {
	root, err := filepath.Abs(".")
	require.NoError(t, err)
	noteSources(t)
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)

	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	tests, programs, clients := 0, 0, 0
	snippets := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllSubmatchIndex(readme, -1)
	for i, at := range snippets {
		snippet := string(readme[at[2]:at[3]])
		require.Contains(t, snippet, "import ", "a snippet has its imports")
		if strings.Contains(snippet, "github.com/redis/go-redis") {
			compiled, err := os.ReadFile("reserve/shared/goredis/readme_test.go")
			require.NoError(t, err)
			require.Contains(t, string(compiled), snippet)
			clients++
			continue
		}
		programs += strings.Count(snippet, "package main")
		tests += strings.Count(snippet, "\nfunc Test")
		if !strings.HasPrefix(snippet, "package ") {
			snippet = "package main; " + snippet
		}
		line := 1 + strings.Count(string(readme[:at[2]]), "\n") // so that errors name the README's lines
		write(fmt.Sprintf("snippet%d_test.go", i), fmt.Sprintf("//line %s/README.md:%d\n%s", root, line, snippet))
	}
	require.Equal(t, strings.Count(string(readme), "```go"), len(snippets))
	require.Equal(t, []int{1, 2, 1}, []int{programs, tests, clients})

	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		write(name, string(text))
	}
	run := func(args ...string) string {
		command := exec.Command("go", args...)
		command.Dir = dir
		command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s", output)
		return string(output)
	}
	run("mod", "edit", "-module", "example.com/readme",
		"-require", "github.com/nextfree/pace@v0.0.0", "-replace", "github.com/nextfree/pace="+root)
	output := run("test", "-vet=all", "-v", ".")
	require.Equal(t, tests, strings.Count(output, "--- PASS"), output)
}

// The README's pictures, and the files that it links to, are there.
func TestReadmeLinks(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	links := regexp.MustCompile(`\]\(([^)#:]+)[)#]`).FindAllSubmatch(readme, -1)
	require.NotEmpty(t, links)
	for _, link := range links {
		require.FileExists(t, string(link[1]))
	}
}

// noteSources looks at all folders of the library. So go test runs this test again when a source has
// changed that no test of this package imports.
func noteSources(t *testing.T) {
	require.NoError(t, filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && (name == ".git" || name == "bench") {
			return filepath.SkipDir
		}
		return err
	}))
}
