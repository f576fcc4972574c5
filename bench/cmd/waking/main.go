// Command waking measures what it costs to wake callers on time: pace, pace with WithSlack(1 ms),
// x/time/rate, and pace at another commit, for 1, 64 and 1,000 goroutines at 100, 5,000 and 50,000
// permits a second. It prints a Markdown table.
//
//	go run ./cmd/waking -beside 0df6482
//
// Each measurement is a process of its own, so that the other commit can be one of them: it is
// built in a git worktree under the temporary directory, with this command's own source in it. The processes
// run in turn, round after round, and the table has the medians of the rounds.
//
// A spacing error is how much the time between two calls, by any goroutine, differs from 1/rate.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nextfree/pace/bench/internal/report"
)

func main() {
	beside := flag.String("beside", "", "a commit of this repository to measure as well")
	rounds := flag.Int("rounds", 3, "how often each measurement is made")
	duration := flag.Duration("duration", 500*time.Millisecond, "how long one measurement takes")
	rates := flag.String("rates", "100,5000,50000", "permits a second")
	goroutines := flag.String("goroutines", "1,64,1000", "callers")
	one := flag.String("measure", "", "make one measurement of this limiter, and print it as JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	perSecond, err1 := numbers(*rates)
	callers, err2 := numbers(*goroutines)
	err := errors.Join(err1, err2)
	switch {
	case err != nil:
	case *one != "":
		err = json.NewEncoder(os.Stdout).Encode(measure(*one, perSecond[0], callers[0], *duration))
	default:
		err = run(ctx, *beside, *rounds, *duration, perSecond, callers)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "waking:", err)
		os.Exit(1)
	}
}

func numbers(list string) (all []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no list of numbers", list)
		}
		all = append(all, n)
	}
	return all, nil
}

// A subject is a limiter, in a program.
type subject struct{ name, program, limiter string }

func run(ctx context.Context, beside string, rounds int, duration time.Duration, rates, goroutines []int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	subjects := []subject{{"pace", self, "pace"}, {"pace, WithSlack(1ms)", self, "slack"}, {"x/time/rate", self, "xtime"}}
	if beside != "" {
		program, remove, err := build(ctx, beside)
		defer remove()
		if err != nil {
			return fmt.Errorf("can't build %s: %w", beside, err)
		}
		subjects = append(subjects, subject{"pace at " + beside, program, "pace"})
	}
	fmt.Printf("%s. %d rounds of %v.\n\n", report.Machine(), rounds, duration)
	var rows [][]string
	for _, rate := range rates {
		for _, n := range goroutines {
			results := make([][]result, len(subjects))
			for range rounds {
				for i, s := range subjects {
					r, err := s.measure(ctx, rate, n, duration)
					if err != nil {
						return err
					}
					results[i] = append(results[i], r)
				}
			}
			for i, s := range subjects {
				rows = append(rows, []string{
					strconv.Itoa(rate), strconv.Itoa(n), s.name,
					fmt.Sprintf("%.0f", median(results[i], func(r result) float64 { return r.Reached })),
					fmt.Sprintf("%.1f", median(results[i], func(r result) float64 { return r.P50 })),
					fmt.Sprintf("%.1f", median(results[i], func(r result) float64 { return r.P99 })),
					fmt.Sprintf("%.1f", median(results[i], func(r result) float64 { return r.CPU })),
				})
			}
		}
	}
	heads := []string{">rate", ">goroutines", "limiter", ">reached", ">spacing error p50, µs", ">p99, µs", ">CPU per call, µs"}
	report.Table(os.Stdout, heads, rows)
	return nil
}

func (s subject) measure(ctx context.Context, rate, goroutines int, duration time.Duration) (r result, err error) {
	command := exec.CommandContext(ctx, s.program, "-measure", s.limiter, "-rates", strconv.Itoa(rate),
		"-goroutines", strconv.Itoa(goroutines), "-duration", duration.String())
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(out, &r)
}

func median(results []result, of func(result) float64) float64 {
	slices.SortFunc(results, func(a, b result) int { return cmp.Compare(of(a), of(b)) })
	return of(results[len(results)/2])
}

// build builds this command at another commit.
func build(ctx context.Context, commit string) (program string, remove func(), err error) {
	remove = func() {}
	dir, err := os.MkdirTemp("", "waking")
	if err != nil {
		return "", remove, err
	}
	top, err := git(ctx, ".", "rev-parse", "--show-toplevel")
	if err != nil {
		return "", remove, err
	}
	tree := filepath.Join(dir, "tree")
	remove = func() {
		_, _ = git(context.Background(), top, "worktree", "remove", "--force", tree)
		_ = os.RemoveAll(dir)
	}
	if _, err = git(ctx, top, "worktree", "add", "--detach", tree, commit); err != nil {
		return "", remove, err
	}
	own := os.DirFS(filepath.Join(top, "bench", "cmd", "waking"))
	if err = os.MkdirAll(filepath.Join(tree, "bench", "cmd", "waking"), 0o755); err != nil {
		return "", remove, err
	}
	files, err := fs.Glob(own, "*.go")
	if err != nil {
		return "", remove, err
	}
	for _, name := range files {
		text, err := fs.ReadFile(own, name)
		if err == nil {
			err = os.WriteFile(filepath.Join(tree, "bench", "cmd", "waking", name), text, 0o644)
		}
		if err != nil {
			return "", remove, err
		}
	}
	program = filepath.Join(dir, "waking")
	command := exec.CommandContext(ctx, "go", "build", "-tags", "withoutslack", "-o", program, "./cmd/waking")
	command.Dir, command.Stderr = filepath.Join(tree, "bench"), os.Stderr
	return program, remove, command.Run()
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir = dir
	out, err := command.Output()
	return strings.TrimSpace(string(out)), err
}
