// Package xtime has no code: it tests the module as its users get it.
package xtime

import (
	"archive/zip"
	"bytes"
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

const (
	root    = "../../.."
	version = "v0.1.0"
	pace    = "github.com/nextfree/pace"
	plug    = pace + "/reserve/plug/xtime"
)

// What README.md tells users to do works once the module is published: the line, go mod tidy, and a build. Both
// modules come from a GOPROXY of files, made of this checkout, and all others from the module cache.
func TestTheLineInAUsersModule(t *testing.T) {
	proxy, user := t.TempDir(), t.TempDir()
	publish(t, proxy, pace, root)
	publish(t, proxy, plug, ".")
	write(t, user, "go.mod", "module example.com/user\n\ngo 1.25.0\n\nrequire golang.org/x/time v0.16.0\n")
	write(t, user, "main.go", `package main

import (
	"fmt"

	"golang.org/x/time/rate"
)

func main() { fmt.Println(rate.NewLimiter(1, 1).Pace() != nil) }
`)
	cache := strings.TrimSpace(run(t, ".", nil, "go", "env", "GOMODCACHE"))
	others := strings.TrimSpace(run(t, ".", nil, "go", "env", "GOPROXY"))
	env := []string{
		"GOPROXY=file://" + proxy + ",file://" + filepath.Join(cache, "cache", "download") + "," + others,
		"GOMODCACHE=" + t.TempDir(), "GONOSUMDB=" + pace, "GOFLAGS=-modcacherw", "GOWORK=off",
	}
	line := readmesLine(t)
	require.Contains(t, line, plug+"@"+version)
	run(t, user, env, "sh", "-c", line)
	run(t, user, env, "sh", "-c", line) // and again: the first one has changed go.mod
	require.Equal(t, "true\n", run(t, user, env, "go", "run", "."))
}

// readmesLine returns the commands that README.md has its users run.
func readmesLine(t *testing.T) string {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	line := regexp.MustCompile(`(?m)^    (go mod edit .*)$`).FindSubmatch(text)
	require.NotNil(t, line)
	return string(line[1])
}

// publish puts a module into a GOPROXY of files, as its go.mod will be when it is released.
func publish(t *testing.T, proxy, module, dir string) {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	mod = bytes.ReplaceAll(mod, []byte(pace+" v0.0.0"), []byte(pace+" "+version))
	mod = regexp.MustCompile(`(?m)^replace .*$`).ReplaceAll(mod, nil)
	var content bytes.Buffer
	z := zip.NewWriter(&content)
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && path != dir && (strings.HasPrefix(d.Name(), ".") || exists(filepath.Join(path, "go.mod"))) {
				return fs.SkipDir // another module
			}
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		if name == "go.mod" {
			text = mod
		}
		w, err := z.Create(module + "@" + version + "/" + filepath.ToSlash(name))
		require.NoError(t, err)
		_, err = w.Write(text)
		return err
	}))
	require.NoError(t, z.Close())
	at := filepath.Join(proxy, filepath.FromSlash(module), "@v")
	write(t, at, "list", version+"\n")
	write(t, at, version+".info", fmt.Sprintf(`{"Version":%q,"Time":"2026-01-01T00:00:00Z"}`, version))
	write(t, at, version+".mod", string(mod))
	write(t, at, version+".zip", content.String())
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func write(t *testing.T, dir, name, text string) {
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
}

func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	c := exec.Command(name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	require.NoError(t, err, "%s %v: %s", name, args, stderr.String())
	return string(out)
}
