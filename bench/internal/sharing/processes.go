package sharing

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/file"
)

// A call is one that the limit allowed.
type call struct {
	process  int
	at, gone int64 // when it might go, and when it went: nanoseconds since 1970
	took     time.Duration
}

// workerVariable tells a process that it is to call: it holds the experiment, as JSON.
const workerVariable = "PACE_DEMO_WORKER"

// Worker calls if this is one of the processes that an experiment has started, and returns whether it is. A program
// that runs experiments must ask this first, for the processes are that program.
func Worker() bool {
	text := os.Getenv(workerVariable)
	if text == "" {
		return false
	}
	var e Experiment
	err := json.Unmarshal([]byte(text), &e)
	if err == nil {
		err = e.work(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
	return true
}

// work calls until the time is over, or until it is killed, and writes each call.
func (e Experiment) work(out io.Writer) error {
	store, err := file.Open(e.Dir)
	if err != nil {
		return err
	}
	policy, err := pace.Bursty(e.Rate, pace.WithBurst(0))
	if err != nil {
		return err
	}
	limiter, err := shared.NewIn(store, "api", policy, shared.WithTimeout(10*time.Second))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), e.Lasts)
	defer cancel()
	for range 2 { // the first answer is slow: from it alone the times of the first calls would be up to 2 ms late
		if _, err := limiter.Snapshot(ctx); err != nil {
			return err
		}
	}
	var mu sync.Mutex
	errs := make(chan error)
	for range e.Callers {
		go func() {
			errs <- func() error {
				for ctx.Err() == nil {
					begin := time.Now()
					r, err := limiter.Reserve(context.WithoutCancel(ctx), 1)
					if err != nil {
						return err
					}
					took := time.Since(begin)
					at := r.At()
					if r.Wait(ctx) != nil {
						return nil
					}
					mu.Lock()
					_, err = fmt.Fprintln(out, at.UnixNano(), time.Now().UnixNano(), int64(took))
					mu.Unlock()
					if err != nil {
						return err
					}
				}
				return nil
			}()
		}()
	}
	for range e.Callers {
		if failed := <-errs; failed != nil {
			err = failed
		}
	}
	return err
}

// watch runs the processes, and returns their calls and when they began.
func watch(ctx context.Context, e Experiment) (calls []call, begin time.Time, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, begin, err
	}
	text, err := json.Marshal(e)
	if err != nil {
		return nil, begin, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	counts := make([]int, e.Processes)
	var readers sync.WaitGroup
	var all []*exec.Cmd
	begin = time.Now()
	for p := range e.Processes {
		cmd := exec.CommandContext(ctx, self)
		cmd.Env = append(os.Environ(), workerVariable+"="+string(text))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, begin, err
		}
		if err := cmd.Start(); err != nil {
			return nil, begin, err
		}
		all = append(all, cmd)
		readers.Go(func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				c := call{process: p}
				var took int64
				if n, _ := fmt.Sscan(lines.Text(), &c.at, &c.gone, &took); n != 3 {
					continue // it was killed while it wrote
				}
				c.took = time.Duration(took)
				mu.Lock()
				calls = append(calls, c)
				counts[p]++
				mu.Unlock()
			}
		})
	}
	done := make(chan struct{})
	go func() {
		readers.Wait()
		close(done)
	}()
	killed := time.After(e.killed())
	if !e.Kill {
		killed = nil
	}
	second := time.NewTicker(time.Second)
	defer second.Stop()
	last := make([]int, e.Processes)
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-killed:
			if err := all[e.Processes-1].Process.Kill(); err != nil {
				return nil, begin, err
			}
			fmt.Printf("      process %d is killed\n", e.Processes)
		case now := <-second.C:
			mu.Lock()
			var parts []string
			sum := 0
			for p, n := range counts {
				parts = append(parts, fmt.Sprintf("%3d", n-last[p]))
				sum += n - last[p]
				last[p] = n
			}
			mu.Unlock()
			fmt.Printf("%3.0f s  %s = %d calls in this second\n",
				now.Sub(begin).Seconds(), strings.Join(parts, " + "), sum)
		}
	}
	for p, cmd := range all {
		if err := cmd.Wait(); err != nil && ctx.Err() == nil && !(e.Kill && p == e.Processes-1) {
			return nil, begin, fmt.Errorf("process %d: %w", p+1, err)
		}
	}
	return calls, begin, ctx.Err()
}
