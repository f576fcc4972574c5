package pace_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// imports are the packages that the documents' snippets use without importing them.
var imports = []string{
	"bytes", "context", "database/sql", "errors", "fmt", "io", "io/fs", "log", "log/slog", "net/http", "net/netip", "os", "slices",
	"strconv", "sync", "testing", "testing/synctest", "time",
	"github.com/jonboulle/clockwork",
	"github.com/nextfree/pace",
	"github.com/nextfree/pace/reserve",
	"github.com/nextfree/pace/reserve/calendar",
	"github.com/nextfree/pace/reserve/fair",
	"github.com/nextfree/pace/reserve/inbound",
	"github.com/nextfree/pace/reserve/keyed",
	"github.com/nextfree/pace/reserve/outbound",
	"github.com/nextfree/pace/reserve/outbound/apis",
	"github.com/nextfree/pace/reserve/outbound/llm",
	"github.com/nextfree/pace/reserve/pacetest",
	"github.com/nextfree/pace/reserve/plug/pacedebug",
	"github.com/nextfree/pace/reserve/pool",
	"github.com/nextfree/pace/reserve/shared",
	"github.com/nextfree/pace/reserve/shared/file",
	"github.com/nextfree/pace/reserve/stream",
	"github.com/nextfree/pace/reserve/window",
	"github.com/nextfree/pace/warmup",
}

// TestDocuments vets the Go snippets of README.md and guide.md in a module that has got pace as a user's does, and runs
// the ones that are tests. The one that needs a client of Redis is compiled in reserve/shared/goredis.
func TestDocuments(t *testing.T) {
	root, err := filepath.Abs(".")
	require.NoError(t, err)
	noteSources(t)
	dir := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o777))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o666))
	}
	snippets := regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	tests, clients := 0, 0
	for _, document := range []string{"README.md", "guide.md"} {
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		found := snippets.FindAllSubmatchIndex(text, -1)
		require.Len(t, found, strings.Count(string(text), "```go"), document)
		for _, at := range found {
			snippet := string(text[at[2]:at[3]])
			if strings.Contains(snippet, "goredis.") {
				compiled, err := os.ReadFile("reserve/shared/goredis/readme_test.go")
				require.NoError(t, err)
				require.Contains(t, string(compiled), snippet)
				clients++
				continue
			}
			tests += strings.Count(snippet, "\nfunc Test") + strings.Count(snippet[:9], "func Test")
			line := 1 + strings.Count(string(text[:at[2]]), "\n") // so that errors name the document's lines
			file := fmt.Sprintf("%s/line%d_test.go", strings.TrimSuffix(strings.ToLower(document), ".md"), line)
			write(file, fmt.Sprintf("%s//line %s/%s:%d\n%s", header(snippet), root, document, line, snippet))
		}
	}
	require.Equal(t, []int{3, 1}, []int{tests, clients})

	run := install(t, dir)
	output := run("test", "-vet=all", "-v", "./...")
	require.Equal(t, tests, strings.Count(output, "--- PASS"), output)
}

// TestFirstProgram runs README.md's first program in a module that has nothing but a published copy of pace.
func TestFirstProgram(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	program := regexp.MustCompile("(?ms)^```go\n(package main\n.*?)^```$").FindSubmatch(text)
	require.NotNil(t, program)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), program[1], 0o666))
	require.Equal(t, 6, strings.Count(install(t, dir)("run", "."), "call "))
}

// install makes a module of a folder, as README.md says: go get of a copy of pace that is published in a folder, and go
// mod tidy. What it returns runs go there. Other modules come from the cache of modules, or else from the proxy.
func install(t *testing.T, dir string) (run func(args ...string) string) {
	proxy, cache := publish(t), t.TempDir()
	downloaded, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	require.NoError(t, err)
	of := strings.Fields(string(downloaded))
	run = func(args ...string) string {
		command := exec.Command("go", args...)
		command.Dir = dir
		command.Env = append(os.Environ(), "GOFLAGS=-modcacherw", "GOWORK=off", "GOSUMDB=off", "GOMODCACHE="+cache,
			"GOPROXY=file://"+proxy+",file://"+filepath.ToSlash(of[0])+"/cache/download,"+of[1])
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s", output)
		return string(output)
	}
	run("mod", "init", "example.com/first")
	run("get", "github.com/nextfree/pace@v0.1.0")
	run("mod", "tidy")
	return run
}

// publish writes pace's module as a proxy has it, and returns the folder.
func publish(t *testing.T) (proxy string) {
	proxy = t.TempDir()
	at := filepath.Join(proxy, "github.com/nextfree/pace/@v")
	require.NoError(t, os.MkdirAll(at, 0o777))
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(at, name), []byte(text), 0o666))
	}
	mod, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	write("list", "v0.1.0\n")
	write("v0.1.0.info", `{"Version": "v0.1.0"}`)
	write("v0.1.0.mod", string(mod))
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	require.NoError(t, filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			_, other := os.Stat(filepath.Join(name, "go.mod"))
			if name == ".git" || name != "." && other == nil {
				return filepath.SkipDir
			}
			return err
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		w, err := z.Create("github.com/nextfree/pace@v0.1.0/" + filepath.ToSlash(name))
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	}))
	require.NoError(t, z.Close())
	write("v0.1.0.zip", b.String())
	return proxy
}

// header returns what must stand before a snippet so that it is a file: its package and its imports.
func header(snippet string) string {
	if strings.HasPrefix(snippet, "package ") {
		return ""
	}
	code := regexp.MustCompile(`(?m)//.*$`).ReplaceAllString(snippet, "")
	var b strings.Builder
	b.WriteString("package main; import (")
	for _, name := range imports {
		if regexp.MustCompile(`\b` + path.Base(name) + `\.[A-Z]`).MatchString(code) {
			fmt.Fprintf(&b, "%q;", name)
		}
	}
	b.WriteString(")\n")
	return b.String()
}

// TestLinks looks for each file that a document links to, and for each heading.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:\s]*)(#[^)]*)?\)`)
	for _, document := range []string{
		"README.md", "guide.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "bench/README.md",
	} {
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			name, heading := document, match[2]
			if match[1] != "" {
				name = filepath.Join(filepath.Dir(document), match[1])
				_, err := os.Stat(name)
				require.NoError(t, err, document)
			}
			if heading != "" {
				require.Contains(t, headings(t, name), heading, "%s: %s", document, name)
			}
		}
	}
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(readme), "\n"), 300, "what is longer belongs into guide.md")
}

// TestCommands looks for each target of make and each command of Go that a document names.
func TestCommands(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	targets := regexp.MustCompile("(?m)(?:`|^    |= ?`?[0-9a-z]+ |and )make ([a-z0-9-]+)")
	folders := regexp.MustCompile(`go (?:run|test)(?: -[^ ]+(?: '[^']*'| [0-9A-Z]\w*)?)* (\./[a-z0-9/]+)`)
	for document, from := range map[string][]string{
		"README.md": {"."}, "guide.md": {"."}, "CONTRIBUTING.md": {".", "bench"}, "SECURITY.md": {"."},
		"bench/README.md": {"bench", "bench/sdk", "bench/shared"},
	} {
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, match := range targets.FindAllStringSubmatch(string(text), -1) {
			require.Regexp(t, "(?m)^"+match[1]+":", string(makefile), document)
		}
		for _, match := range folders.FindAllStringSubmatch(string(text), -1) {
			name := strings.TrimSuffix(strings.TrimSuffix(match[1], "..."), "/")
			found := false
			for _, dir := range from {
				_, err := os.Stat(filepath.Join(dir, name))
				found = found || err == nil
			}
			require.True(t, found, "%s: %s", document, match[0])
		}
	}
}

// headings returns the anchors that GitHub makes of a document's headings.
func headings(t *testing.T, name string) (anchors []string) {
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	gone := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, line := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		anchor := gone.ReplaceAllString(strings.ToLower(line[1]), "")
		anchors = append(anchors, "#"+strings.ReplaceAll(anchor, " ", "-"))
	}
	return anchors
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
