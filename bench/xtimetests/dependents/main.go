// Command dependents runs the tests of programs that use golang.org/x/time/rate, as they are and with
//
//	replace golang.org/x/time => .../reserve/plug/xtime
//
// in their go.mod, and prints as a Markdown table how many pass. It takes the programs from the module proxy into a
// temporary folder. Arguments choose programs by a part of their name; without any it runs all, in some ten minutes with
// warm caches, and downloads 1 GB with cold ones.
//
// The exit status is 1 if a test that passes without the line does not pass with it, in three attempts.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nextfree/pace/bench/internal/report"
)

// A program is a module whose packages use golang.org/x/time/rate.
type program struct {
	module   string // with its version
	kind     string
	packages []string
	flags    []string // for go test: what needs a network or another program is left out
}

var programs = []program{
	{"k8s.io/client-go@v0.37.2", "Kubernetes: the client's pacing, work queues",
		[]string{"./util/flowcontrol", "./util/workqueue", "./rest"}, nil},
	{"gitlab.com/gitlab-org/api/client-go@v1.46.0", "GitLab client, by its headers", []string{"."}, nil},
	{"github.com/go-kit/kit@v0.13.0", "middleware", []string{"./ratelimit"}, nil},
	{"go.temporal.io/sdk@v1.50.0", "workflow workers", []string{"./internal"}, nil},
	{"github.com/ethereum/go-ethereum@v1.17.10", "DNS of peers", []string{"./p2p/dnsdisc"}, nil},
	{"github.com/cloudflare/cloudflare-go@v0.119.0", "REST client with retries", []string{"."}, nil},
	{"go.etcd.io/etcd/server/v3@v3.7.3", "reconnecting peers, gRPC proxy",
		[]string{"./etcdserver/api/rafthttp", "./proxy/grpcproxy"}, nil},
	{"github.com/digitalocean/godo@v1.236.0", "REST client", []string{"."}, nil},
	{"github.com/labstack/echo/v4@v4.16.0", "a server's limits by address", []string{"./middleware"}, nil},
	{"github.com/libp2p/go-libp2p@v0.51.0", "peers' limits by network",
		[]string{"./x/rate", "./p2p/transport/quicreuse"}, nil},
	{"github.com/hashicorp/vault/api@v1.23.0", "Vault client", []string{"."}, nil},
	{"github.com/nats-io/nats-server/v2@v2.15.2", "consumers of a stream",
		[]string{"./server"}, []string{"-run=TestJetStream.*(Consumer|RateLimit)", "-short"}},
}

func main() {
	ok, err := run(os.Stdout, os.Stderr, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "dependents:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(w, progress io.Writer, only []string) (ok bool, err error) {
	ours, err := goTool("", "list", "-m", "-f", "{{.Path}}={{.Dir}}", "github.com/nextfree/pace",
		"github.com/nextfree/pace/reserve/plug/xtime")
	if err != nil {
		return false, err
	}
	lines := strings.Fields(strings.ReplaceAll(string(ours), "github.com/nextfree/pace/reserve/plug/xtime=", "golang.org/x/time="))
	ok = true
	var rows [][]string
	for _, p := range programs {
		if len(only) > 0 && !slices.ContainsFunc(only, func(s string) bool { return strings.Contains(p.module, s) }) {
			continue
		}
		fmt.Fprintln(progress, "dependents:", p.module)
		without, with, err := p.both(lines)
		if err != nil {
			return false, fmt.Errorf("%s: %w", p.module, err)
		}
		row, good := judge(p, without, with)
		rows, ok = append(rows, row), ok && good
	}
	report.Table(w, []string{"program", "what", "packages", ">pass without", ">pass with", "what differs"}, rows)
	return ok && len(rows) > 0, nil
}

// results are how tests ended, by package and name: "pass", "fail" or "skip".
type results map[string]string

func (r results) count(how string) (n int) {
	for _, h := range r {
		if h == how {
			n++
		}
	}
	return
}

// judge says of a program how its tests went, and whether all pass that pass without the line.
func judge(p program, without, with results) (row []string, ok bool) {
	var differ []string
	for name, before := range without {
		if before == "pass" && with[name] != "pass" {
			differ = append(differ, name)
		}
	}
	slices.Sort(differ)
	says := strings.Join(differ, ", ")
	if n := without.count("fail"); n > 0 && says == "" {
		says = fmt.Sprintf("nothing; %d fail in both", n)
	}
	if says == "" {
		says = "nothing"
	}
	return []string{p.module, p.kind, strings.Join(p.packages, " "), fmt.Sprint(without.count("pass")),
		fmt.Sprint(with.count("pass")), says}, len(differ) == 0 && without.count("pass") > 0
}

// both runs the program's tests without the replace lines and with them.
func (p program) both(lines []string) (without, with results, err error) {
	downloaded, err := goTool("", "mod", "download", "-json", p.module)
	if err != nil {
		return nil, nil, err
	}
	var m struct{ Dir string }
	if err := json.Unmarshal(downloaded, &m); err != nil {
		return nil, nil, fmt.Errorf("go mod download: %w", err)
	}
	folder, err := os.MkdirTemp("", "dependents")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(folder)
	if err := os.CopyFS(folder, os.DirFS(m.Dir)); err != nil {
		return nil, nil, err
	}
	if err := p.prepare(folder); err != nil {
		return nil, nil, err
	}
	if without, err = p.test(folder, nil); err != nil {
		return nil, nil, err
	}
	args := []string{"mod", "edit"}
	for _, l := range lines {
		args = append(args, "-replace="+l)
	}
	if _, err := goTool(folder, args...); err != nil {
		return nil, nil, err
	}
	used, err := goTool(folder, "list", "-f", "{{.Dir}}", "golang.org/x/time/rate")
	if err != nil {
		return nil, nil, err
	}
	if !strings.Contains(string(used), filepath.Join("plug", "xtime", "rate")) {
		return nil, nil, fmt.Errorf("the line does nothing: the package is %s", used)
	}
	with, err = p.test(folder, nil)
	for range 2 { // those that fail now and then
		var again []string
		for name, before := range without {
			if before == "pass" && with[name] != "pass" {
				again = append(again, name)
			}
		}
		if err != nil || len(again) == 0 {
			break
		}
		var more results
		if more, err = p.test(folder, again); err == nil {
			for _, name := range again {
				with[name] = more[name]
			}
		}
	}
	return without, with, err
}

// prepare makes the module one that can be built by itself, by a Go that can build pace.
func (p program) prepare(folder string) error {
	// What the module proxy gives out is read-only.
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode()|0o200)
	})
	if err != nil {
		return err
	}
	said, err := goTool(folder, "mod", "edit", "-json")
	if err != nil {
		return err
	}
	var file struct {
		Go      string
		Replace []struct {
			Old struct{ Path string }
			New struct{ Path, Version string }
		}
	}
	if err := json.Unmarshal(said, &file); err != nil {
		return fmt.Errorf("go mod edit: %w", err)
	}
	args := []string{"mod", "edit"}
	if file.Go < "1.25" { // both runs have what the line would raise
		args = append(args, "-go=1.25.0")
	}
	for _, r := range file.Replace {
		if r.New.Version == "" { // a folder beside it, that is not there
			args = append(args, "-dropreplace="+r.Old.Path)
		}
	}
	if len(args) == 2 {
		return nil
	}
	_, err = goTool(folder, args...)
	return err
}

// test runs the program's tests: all, or the packages and names that are given.
func (p program) test(folder string, names []string) (results, error) {
	flags := p.flags
	if names != nil {
		var top []string
		for _, name := range names {
			_, test, _ := strings.Cut(name, " ")
			test, _, _ = strings.Cut(test, "/")
			top = append(top, test)
		}
		slices.Sort(top)
		flags = []string{"-run=^(" + strings.Join(slices.Compact(top), "|") + ")$"}
	}
	args := append(append([]string{"test", "-json", "-count=1", "-timeout=15m", "-vet=off"}, flags...), p.packages...)
	output, failed := goTool(folder, args...) // it fails when a test does
	r, err := read(output)
	if err == nil && len(r) == 0 {
		err = fmt.Errorf("no test ran: %w", failed)
	}
	return r, err
}

// read reads what `go test -json` prints.
func read(output []byte) (results, error) {
	r := results{}
	for d := json.NewDecoder(bytes.NewReader(output)); d.More(); {
		var e struct{ Action, Package, Test string }
		if err := d.Decode(&e); err != nil {
			return nil, fmt.Errorf("go test: %w", err)
		}
		switch e.Action {
		case "pass", "fail", "skip":
			if e.Test != "" {
				r[e.Package+" "+e.Test] = e.Action
			}
		}
	}
	return r, nil
}

func goTool(folder string, args ...string) ([]byte, error) {
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
