// Command k8s runs client-go's own tests of its limiters, of its workqueues and of its rest client
// with pace's limiters in the place of its own, and prints as a Markdown table how they go, beside
// how they go with its own.
//
// It copies client-go out of the module cache to a temporary folder, and there renames the
// functions that make limiters and adds its own: see the folder swap. TestSwapped, which it adds
// too, says that they are pace's. The exit status is 1 if a test fails that is not known to.
package main

import (
	"bytes"
	"embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/nextfree/pace/bench/internal/gotest"
	"github.com/nextfree/pace/bench/internal/report"
)

//go:embed swap
var swapped embed.FS

const (
	module  = "k8s.io/client-go"
	version = "v0.31.0"
)

// What is tested.
var packages = []string{"./util/flowcontrol", "./util/workqueue", "./rest"}

// What is renamed in the copy, so that those in swap can take its place.
var renamed = []struct{ file, from, to string }{
	{"util/flowcontrol/throttle.go", "func NewTokenBucketRateLimiter(", "func newOriginal("},
	{"util/flowcontrol/throttle.go", "func NewTokenBucketRateLimiterWithClock(", "func newOriginalWithClock("},
	{"util/workqueue/default_rate_limiters.go",
		"func NewTypedItemExponentialFailureRateLimiter[", "func newOriginalExponential["},
	{"util/workqueue/default_rate_limiters.go", "func DefaultTypedControllerRateLimiter[", "func originalDefault["},
}

func main() {
	ok, err := run(os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "k8s:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(w io.Writer) (ok bool, err error) {
	dir, err := gotest.Go("", "list", "-m", "-f", "{{.Dir}}", "github.com/nextfree/pace")
	if err != nil {
		return false, err
	}
	root := strings.TrimSpace(string(dir))
	folder, err := os.MkdirTemp("", "pace-k8s-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(folder)
	if err := gotest.Copy(module+"@"+version, folder); err != nil {
		return false, err
	}
	before, err := test(folder)
	if err != nil {
		return false, err
	}
	if err := swap(folder, root); err != nil {
		return false, err
	}
	after, err := test(folder)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(w, "The tests of %s %s.\n\n", module, version)
	var rows [][]string
	for _, p := range packages {
		a, b := before[p], after[p]
		rows = append(rows, []string{p, fmt.Sprint(a.passed), fmt.Sprint(len(a.failed)),
			fmt.Sprint(b.passed), fmt.Sprint(len(b.failed))})
	}
	report.Table(w, []string{"package", ">with its own limiters: pass", ">fail", ">with pace's: pass", ">fail"}, rows)
	fmt.Fprintln(w)
	ok = true
	for _, p := range packages {
		for _, name := range after[p].failed {
			test, sub, _ := strings.Cut(name, "/")
			why, isKnown := known[test]
			if !isKnown {
				ok, why = false, "it should pass"
			}
			if sub == "" || !isKnown {
				fmt.Fprintf(w, "Fails with pace's: %s %s: %s.\n", p, name, why)
			}
		}
		ok = ok && len(before[p].failed) == 0 && after[p].passed+len(after[p].failed) >= before[p].passed
	}
	return ok, nil
}

// known are the tests that can't pass, and why.
var known = map[string]string{
	"TestRESTClientLimiter": "it compares two limiters that were made apart by reflect.DeepEqual, " +
		"and pace's remember when they were made",
}

// swap puts pace's limiters in the place of the copy's.
func swap(folder, root string) error {
	for _, r := range renamed {
		path := filepath.Join(folder, r.file)
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.Count(text, []byte(r.from)) != 1 {
			return fmt.Errorf("%s: there is not one %q", r.file, r.from)
		}
		if err := os.WriteFile(path, bytes.Replace(text, []byte(r.from), []byte(r.to), 1), 0o644); err != nil {
			return err
		}
	}
	for _, p := range []string{"flowcontrol", "workqueue"} {
		for file, as := range map[string]string{p + ".go.txt": "pace.go", p + "_test.go.txt": "pace_test.go"} {
			text, err := swapped.ReadFile("swap/" + file)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(folder, "util", p, as), text, 0o644); err != nil {
				return err
			}
		}
	}
	const pace, plug = "github.com/nextfree/pace", "github.com/nextfree/pace/reserve/plug/pacek8s"
	_, err := gotest.Go(folder, "mod", "edit", "-go=1.25.0",
		"-require="+pace+"@v0.0.0", "-replace="+pace+"="+root,
		"-require="+plug+"@v0.0.0", "-replace="+plug+"="+filepath.Join(root, "reserve/plug/pacek8s"))
	return err
}

// A result is how the tests of a package went.
type result struct {
	passed int
	failed []string
}

// test runs the tests in a folder, each subtest counted by itself.
func test(folder string) (map[string]result, error) {
	all, err := gotest.Test(folder, append([]string{"-timeout=5m", "-vet=off"}, packages...)...)
	if err != nil {
		return nil, err
	}
	results := map[string]result{}
	for _, t := range all {
		p := "." + strings.TrimPrefix(t.Package, module)
		r := results[p]
		switch t.How {
		case "pass":
			r.passed++
		case "fail":
			r.failed = append(r.failed, t.Test)
		}
		results[p] = r
	}
	for _, p := range packages {
		if results[p].passed == 0 {
			return nil, fmt.Errorf("no test of %s passed", p)
		}
	}
	return results, nil
}
