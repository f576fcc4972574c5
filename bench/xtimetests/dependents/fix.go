package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	before = `"golang.org/x/time/rate"`
	after  = `"github.com/nextfree/pace/reserve/plug/xtime/rate"`
)

// A move is what happened to a program that was moved to package xtime/rate, and on to pace.
type move struct {
	files int      // in which the import path was changed
	lines []string // that go fix has written
	found []string // by pacevet, before
}

func (m move) String() string {
	var b strings.Builder
	for _, l := range m.found {
		fmt.Fprintln(&b, "  pacevet:", l)
	}
	for _, l := range m.lines {
		fmt.Fprintln(&b, "  go fix: ", l)
	}
	return b.String()
}

// move changes the import path in the program's packages, has `go fix -inline` carry on to pace what it can, and
// goimports mend the imports.
func (p program) move(folder string, ours ours) (m move, err error) {
	_, said := tool(folder, ours.pacevet, p.packages...) // it fails when it finds something, and says so as an error
	if said != nil {
		for _, l := range strings.Split(said.Error(), "\n")[1:] {
			if l != "" {
				m.found = append(m.found, strings.TrimPrefix(l, folder+string(filepath.Separator)))
			}
		}
	}
	if _, err := goTool(folder, "mod", "edit", "-require=github.com/nextfree/pace/reserve/plug/xtime@v0.0.0",
		"-replace=github.com/nextfree/pace/reserve/plug/xtime="+ours.xtime,
		"-replace=github.com/nextfree/pace="+ours.pace); err != nil {
		return m, err
	}
	files, err := p.rename(folder)
	if err != nil {
		return m, err
	}
	m.files = len(files)
	diff, _ := goTool(folder, append([]string{"fix", "-inline", "-diff"}, p.packages...)...) // it fails when there is one
	for _, l := range strings.Split(string(diff), "\n") {
		if strings.HasPrefix(l, "+") && strings.Contains(l, "Pace()") {
			m.lines = append(m.lines, strings.TrimSpace(l[1:]))
		}
	}
	if _, err := goTool(folder, append([]string{"fix", "-inline"}, p.packages...)...); err != nil {
		return m, err
	}
	_, err = goTool("", append([]string{"run", "golang.org/x/tools/cmd/goimports@v0.42.0", "-w"}, files...)...)
	return m, err
}

// rename changes the import path in the files of the program's packages, and returns their names.
func (p program) rename(folder string) (files []string, err error) {
	for _, pkg := range p.packages {
		names, err := filepath.Glob(filepath.Join(folder, pkg, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			changed := strings.Replace(string(text), before, after, 1)
			if changed == string(text) {
				continue
			}
			if err := os.WriteFile(name, []byte(changed), 0o600); err != nil {
				return nil, err
			}
			files = append(files, name)
		}
	}
	return files, nil
}
