// Command dependents runs the tests of programs that use golang.org/x/time/rate, as they are and with
//
//	replace golang.org/x/time => .../reserve/plug/xtime
//
// in their go.mod, and prints as a Markdown table how many pass. It takes the programs from the module proxy into a
// temporary folder. Arguments choose programs by a part of their name; without any it runs all, in some ten minutes with
// warm caches, and downloads 1 GB with cold ones.
//
// With -fix it changes the programs' import path instead, has `go fix -inline` carry on to pace what it can, and goimports
// mend the imports; prints what that has rewritten, what pacevet says of the program, and how many tests pass then.
//
// The exit status is 1 if a test that passes without the line does not pass with it, in three attempts.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
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
	fix := flag.Bool("fix", false, "change the import path, and run go fix")
	flag.Parse()
	ok, err := run(os.Stdout, os.Stderr, *fix, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "dependents:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(w, progress io.Writer, fix bool, only []string) (ok bool, err error) {
	output, err := goTool("", "list", "-m", "-f", "{{.Dir}}", "github.com/nextfree/pace",
		"github.com/nextfree/pace/reserve/plug/xtime")
	if err != nil {
		return false, err
	}
	dirs := strings.Fields(string(output))
	if len(dirs) != 2 {
		return false, fmt.Errorf("go list: %q", output)
	}
	ours := ours{pace: dirs[0], xtime: dirs[1]}
	header := []string{"program", "what", "packages", ">pass without", ">pass with", "what differs"}
	if fix {
		header = []string{"program", ">files", ">rewritten by go fix", ">named by pacevet", ">pass before", ">pass after",
			"what differs"}
		bin, err := os.MkdirTemp("", "pacevet")
		if err != nil {
			return false, err
		}
		defer os.RemoveAll(bin)
		ours.pacevet = filepath.Join(bin, "pacevet")
		module := filepath.Join(ours.xtime, "..", "pacevet")
		if _, err := goTool(module, "build", "-o", ours.pacevet, "./cmd/pacevet"); err != nil {
			return false, err
		}
	}
	ok = true
	var rows [][]string
	for _, p := range programs {
		if len(only) > 0 && !slices.ContainsFunc(only, func(s string) bool { return strings.Contains(p.module, s) }) {
			continue
		}
		fmt.Fprintln(progress, "dependents:", p.module)
		row, good, err := p.run(progress, ours, fix)
		if err != nil {
			return false, fmt.Errorf("%s: %w", p.module, err)
		}
		rows, ok = append(rows, row), ok && good
	}
	report.Table(w, header, rows)
	return ok && len(rows) > 0, nil
}

// ours are the folders of pace's modules, and the command pacevet.
type ours struct{ pace, xtime, pacevet string }

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
	both := 0
	for name, before := range without {
		if before == "fail" && with[name] == "fail" {
			both++
		}
	}
	if both > 0 && says == "" {
		says = fmt.Sprintf("nothing; %d fail in both", both)
	}
	if says == "" {
		says = "nothing"
	}
	return []string{p.module, p.kind, strings.Join(p.packages, " "), fmt.Sprint(without.count("pass")),
		fmt.Sprint(with.count("pass")), says}, len(differ) == 0 && without.count("pass") > 0
}

// run runs the program's tests before and after the change, and says in a row how they went.
func (p program) run(progress io.Writer, ours ours, fix bool) (row []string, ok bool, err error) {
	folder, err := os.MkdirTemp("", "dependents")
	if err != nil {
		return nil, false, err
	}
	defer os.RemoveAll(folder)
	if err := p.prepare(folder); err != nil {
		return nil, false, err
	}
	without, err := p.test(folder, nil)
	if err != nil {
		return nil, false, err
	}
	if fix {
		m, err := p.move(folder, ours)
		if err != nil {
			return nil, false, err
		}
		fmt.Fprint(progress, m)
		with, err := p.testAgain(folder, without)
		if err != nil {
			return nil, false, err
		}
		row, ok = judge(p, without, with)
		return append([]string{p.module, fmt.Sprint(m.files), fmt.Sprint(len(m.lines)), fmt.Sprint(len(m.found))}, row[3:]...),
			ok, nil
	}
	if _, err := goTool(folder, "mod", "edit", "-replace=golang.org/x/time="+ours.xtime,
		"-replace=github.com/nextfree/pace="+ours.pace); err != nil {
		return nil, false, err
	}
	used, err := goTool(folder, "list", "-f", "{{.Dir}}", "golang.org/x/time/rate")
	if err != nil {
		return nil, false, err
	}
	if strings.TrimSpace(string(used)) != filepath.Join(ours.xtime, "rate") {
		return nil, false, fmt.Errorf("the line does nothing: the package is %s", used)
	}
	with, err := p.testAgain(folder, without)
	if err != nil {
		return nil, false, err
	}
	row, ok = judge(p, without, with)
	return row, ok, nil
}

// testAgain runs all tests, and those that have passed before and fail now twice more: some fail now and then.
func (p program) testAgain(folder string, without results) (with results, err error) {
	with, err = p.test(folder, nil)
	for range 2 {
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
	return with, err
}

// prepare copies the module to the folder, and makes it one that can be built by itself, by a Go that can build pace.
func (p program) prepare(folder string) error {
	downloaded, err := goTool("", "mod", "download", "-json", p.module)
	if err != nil {
		return err
	}
	var m struct{ Dir string }
	if err := json.Unmarshal(downloaded, &m); err != nil {
		return fmt.Errorf("go mod download: %w", err)
	}
	if err := os.CopyFS(folder, os.DirFS(m.Dir)); err != nil {
		return err
	}
	// What the module proxy gives out is read-only.
	err = filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
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

func goTool(folder string, args ...string) ([]byte, error) { return tool(folder, "go", args...) }

// tool runs a command in a folder, without what this module's environment says of modules; "": here, with it.
func tool(folder, name string, args ...string) ([]byte, error) {
	var stderr bytes.Buffer
	c := exec.Command(name, args...)
	c.Dir, c.Stderr = folder, &stderr
	if folder != "" {
		c.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOTOOLCHAIN=local")
	}
	output, err := c.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, &stderr)
	}
	return output, err
}
