// Command xtimetests runs golang.org/x/time/rate's own tests on package xtime/rate, which has that package's API on
// pace, and prints as a Markdown table which pass and how the others differ. It also runs them with -tags
// xtimestrict, where all must pass.
//
// The tests stay where they are, in the module cache: `go test -overlay` shows them to the compiler as a file
// of the package. The exit status is 1 if a test differs in another way than is explained here.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/nextfree/pace/bench/internal/gotest"
	"github.com/nextfree/pace/bench/internal/report"
	_ "github.com/nextfree/pace/reserve/plug/xtime/rate" // so that go.mod requires it
)

const (
	body   = "github.com/nextfree/pace/reserve/plug/xtime/rate"
	module = "golang.org/x/time"
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
	version, tests, err := runTests()
	if err != nil {
		return false, err
	}
	_, strictly, err := runTests("-tags=xtimestrict")
	if err != nil {
		return false, err
	}
	fmt.Fprintf(w, "The tests of %s/rate %s, on pace.\n\n", module, version)
	rows, ok := judge(tests, known)
	report.Table(w, []string{"test", "on pace", "how it differs", "why"}, rows)
	_, strict := judge(strictly, nil)
	fmt.Fprintf(w, "\nWith -tags xtimestrict all %d pass: %v.\n", len(strictly), strict)
	return ok && strict, nil
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

// runTests runs the tests, and returns the module's version and how they went.
func runTests(flags ...string) (version string, tests []test, err error) {
	folder, err := gotest.Go("", "list", "-f", "{{.Dir}}", body)
	if err != nil {
		return "", nil, err
	}
	m, err := gotest.Download(module)
	if err != nil {
		return "", nil, err
	}
	here := strings.TrimSpace(string(folder))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(here, "xtime_test.go"): filepath.Join(m.Dir, "rate", "rate_test.go"),
		filepath.Join(here, "rate_test.go"):  "", // the package's own
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
	results, err := gotest.Test("", append(flags, "-overlay="+file, body)...)
	for _, r := range results {
		tests = append(tests, test{r.Test, r.How == "pass", differences(r.Output)})
	}
	return m.Version, tests, err
}
