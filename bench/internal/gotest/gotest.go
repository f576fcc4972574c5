// Package gotest runs the tests of other modules.
package gotest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Go runs the go command in a folder, without this module's flags; "" is here, with them. It returns what that prints.
func Go(folder string, args ...string) ([]byte, error) {
	var stderr bytes.Buffer
	c := exec.Command("go", args...)
	c.Dir, c.Stderr = folder, &stderr
	if folder != "" {
		c.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOTOOLCHAIN=local")
	}
	output, err := c.Output()
	if err != nil {
		err = fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, &stderr)
	}
	return output, err
}

// A Module is one in the module cache.
type Module struct{ Version, Dir string }

// Download has the module proxy give out a module: "golang.org/x/time", or "golang.org/x/time@v0.15.0".
func Download(module string) (m Module, err error) {
	output, err := Go("", "mod", "download", "-json", module)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(output, &m); err != nil {
		return m, fmt.Errorf("go mod download: %w", err)
	}
	return m, nil
}

// Copy downloads a module, and copies it to a folder, where its files can be changed.
func Copy(module, folder string) error {
	m, err := Download(module)
	if err != nil {
		return err
	}
	if err := os.CopyFS(folder, os.DirFS(m.Dir)); err != nil {
		return err
	}
	return filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error { // the cache is read-only
		if err != nil {
			return err
		}
		return os.Chmod(path, 0o755)
	})
}

// A Result is how a test, or a subtest, ended.
type Result struct {
	Package, Test string
	How           string   // "pass", "fail" or "skip"
	Output        []string // lines
}

// Test runs tests in a folder: `go test` with more arguments. Tests that fail are no error.
func Test(folder string, args ...string) ([]Result, error) {
	output, failed := Go(folder, append([]string{"test", "-json", "-count=1"}, args...)...)
	results, err := read(output)
	if err == nil && len(results) == 0 {
		err = fmt.Errorf("no test ran: %w", failed)
	}
	return results, err
}

// read reads what `go test -json` prints.
func read(output []byte) (results []Result, err error) {
	said := map[string][]string{}
	var build strings.Builder
	for d := json.NewDecoder(bytes.NewReader(output)); ; {
		var e struct{ Action, Package, Test, Output string }
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go test: %w", err)
		}
		name := e.Package + " " + e.Test
		switch e.Action {
		case "output":
			said[name] = append(said[name], e.Output)
		case "build-output":
			build.WriteString(e.Output)
		case "pass", "fail", "skip":
			if e.Test != "" {
				results = append(results, Result{e.Package, e.Test, e.Action, said[name]})
			}
		}
	}
	if len(results) == 0 && build.Len() > 0 {
		return nil, fmt.Errorf("go test: %s", &build)
	}
	return results, nil
}
