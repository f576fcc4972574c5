// Command dependents runs the tests of programs that use golang.org/x/time/rate, as they are and with
//
//	replace golang.org/x/time => .../reserve/plug/xtime
//
// in their go.mod, and prints as a Markdown table how many pass. It takes the programs from the module proxy into a
// temporary folder. Arguments choose programs by a part of their name; without any it runs all, in some ten minutes
// with warm caches, and downloads 1 GB with cold ones.
//
// The exit status is 1 if a test that passes without the line does not pass with it, in three attempts.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nextfree/pace/bench/internal/gotest"
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
	{"github.com/grafana/dskit@v0.0.0-20260703122047-de1ec7541c44", "limits by tenant", []string{"./limiter"}, nil},
	{"github.com/moby/buildkit@v0.34.2", "progress of builds", []string{"./util/progress"}, nil},
	{"github.com/rclone/rclone@v1.76.0", "bandwidth of transfers", []string{"./fs/accounting"}, nil},
	{"cloud.google.com/go/firestore@v1.29.2", "bulk writer", []string{"."}, nil},
	{"github.com/moby/swarmkit/v2@v2.0.0", "dispatcher of tasks", []string{"./manager/dispatcher"}, nil},
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
	output, err := gotest.Go("", "list", "-m", "-f", "{{.Dir}}", "github.com/nextfree/pace",
		"github.com/nextfree/pace/reserve/plug/xtime")
	if err != nil {
		return false, err
	}
	dirs := strings.Fields(string(output))
	if len(dirs) != 2 {
		return false, fmt.Errorf("go list: %q", output)
	}
	ok = true
	var rows [][]string
	for _, p := range programs {
		if len(only) > 0 && !slices.ContainsFunc(only, func(s string) bool { return strings.Contains(p.module, s) }) {
			continue
		}
		fmt.Fprintln(progress, "dependents:", p.module)
		row, good, err := p.run(dirs[0], dirs[1])
		if err != nil {
			return false, fmt.Errorf("%s: %w", p.module, err)
		}
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

// run runs the program's tests without the line and with it, and says in a row how they went.
func (p program) run(pace, xtime string) (row []string, ok bool, err error) {
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
	if _, err := gotest.Go(folder, "mod", "edit", "-replace=golang.org/x/time="+xtime,
		"-replace=github.com/nextfree/pace="+pace); err != nil {
		return nil, false, err
	}
	used, err := gotest.Go(folder, "list", "-f", "{{.Dir}}", "golang.org/x/time/rate")
	if err != nil {
		return nil, false, err
	}
	if strings.TrimSpace(string(used)) != filepath.Join(xtime, "rate") {
		return nil, false, fmt.Errorf("the line does nothing: the package is %s", used)
	}
	with, err := p.testAgain(folder, without)
	if err != nil {
		return nil, false, err
	}
	row, ok = judge(p, without, with)
	return row, ok, nil
}

// testAgain runs all tests. A test that passed without the line and fails now runs up to twice more: some fail now
// and then.
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
	if err := gotest.Copy(p.module, folder); err != nil {
		return err
	}
	said, err := gotest.Go(folder, "mod", "edit", "-json")
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
	_, err = gotest.Go(folder, args...)
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
	all, err := gotest.Test(folder, slices.Concat([]string{"-timeout=15m", "-vet=off"}, flags, p.packages)...)
	r := results{}
	for _, t := range all {
		r[t.Package+" "+t.Test] = t.How
	}
	return r, err
}
