// Command xtimetests runs golang.org/x/time/rate's own tests on pace, through an adapter, and prints
// as a Markdown table which pass and how the others differ.
//
// The tests stay where they are, in the module cache: `go test -overlay` shows them to the compiler as a file
// of the adapter's package, rate. The exit status is 1 if a test differs in another way than is explained here.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/nextfree/pace/bench/internal/report"
)

const (
	adapter = "github.com/nextfree/pace/bench/xtimetests/rate"
	module  = "golang.org/x/time"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "xtimetests: there are no arguments")
		os.Exit(2)
	}
	ok, err := run(os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "xtimetests:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(w io.Writer) (ok bool, err error) {
	version, output, err := runTests()
	if err != nil {
		return false, err
	}
	tests, err := read(output)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(w, "The tests of %s/rate %s, on pace.\n\n", module, version)
	rows, ok := judge(tests, known)
	report.Table(w, []string{"test", "on pace", "how it differs", "why"}, rows)
	return ok, nil
}

// judge says of every test how it went, and whether all is as it is known.
func judge(tests []test, known map[string]difference) (rows [][]string, ok bool) {
	ok = true
	seen := map[string]bool{}
	for _, t := range tests {
		seen[t.name] = true
		k, isKnown := known[t.name]
		how := strings.Join(t.differences, "; ")
		switch {
		case t.passed && !isKnown:
			rows = append(rows, []string{t.name, "passes", "", ""})
		case !t.passed && isKnown && how == k.how:
			rows = append(rows, []string{t.name, "differs", how, k.why})
		default:
			ok = false
			rows = append(rows, []string{t.name, map[bool]string{true: "passes", false: "differs"}[t.passed], how,
				strings.TrimSuffix("not explained. Known: "+k.how, " Known: ")})
		}
	}
	for name := range known {
		if !seen[name] {
			ok = false
			rows = append(rows, []string{name, "is not there", "", ""})
		}
	}
	return rows, ok && len(tests) > 0
}

// runTests runs the tests, and returns the module's version and what `go test -json` prints.
func runTests() (version string, output []byte, err error) {
	folder, err := goTool("list", "-f", "{{.Dir}}", adapter)
	if err != nil {
		return "", nil, err
	}
	downloaded, err := goTool("mod", "download", "-json", module)
	if err != nil {
		return "", nil, err
	}
	var m struct{ Version, Dir string }
	if err := json.Unmarshal(downloaded, &m); err != nil {
		return "", nil, fmt.Errorf("go mod download: %w", err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(strings.TrimSpace(string(folder)), "xtime_test.go"): filepath.Join(m.Dir, "rate", "rate_test.go"),
	}})
	if err != nil {
		return "", nil, err
	}
	temporary, err := os.MkdirTemp("", "xtimetests")
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(temporary)
	file := filepath.Join(temporary, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return "", nil, err
	}
	output, err = goTool("test", "-json", "-count=1", "-overlay="+file, adapter)
	if len(output) > 0 {
		err = nil // tests fail, and say so
	}
	return m.Version, output, err
}

func goTool(args ...string) ([]byte, error) {
	var stderr bytes.Buffer
	c := exec.Command("go", args...)
	c.Stderr = &stderr
	output, err := c.Output()
	if err != nil {
		err = fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, &stderr)
	}
	return output, err
}
