package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/goredis"
)

const rate = 2000

// processes starts n processes that share one rate, and says how evenly it is kept.
func processes(addr string, n int, seconds float64) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var outputs []io.Reader
	var all []*exec.Cmd
	for range n {
		cmd := exec.Command(self, "-worker", addr, "-seconds", strconv.FormatFloat(seconds+1, 'f', -1, 64))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		outputs, all = append(outputs, out), append(all, cmd)
	}
	var mu sync.Mutex
	var times []int64
	var counts []int
	var wg sync.WaitGroup
	for _, out := range outputs {
		wg.Go(func() {
			var mine []int64
			for lines := bufio.NewScanner(out); lines.Scan(); {
				at, err := strconv.ParseInt(lines.Text(), 10, 64)
				if err == nil {
					mine = append(mine, at)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			times, counts = append(times, mine...), append(counts, len(mine))
		})
	}
	wg.Wait()
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil {
			return err
		}
	}
	slices.Sort(times)
	// All have begun after half a second, and none has ended half a second before the end.
	begin, end := times[0]+int64(time.Second/2), times[len(times)-1]-int64(time.Second/2)
	fmt.Printf("\n%d processes with 16 goroutines each on one key at %d/s: %v calls\n", n, rate, counts)
	for _, window := range []time.Duration{100 * time.Millisecond, time.Second} {
		least, most := len(times), 0
		sum, windows := 0, 0
		for from := begin; from+int64(window) <= end; from += int64(window) {
			i, _ := slices.BinarySearch(times, from)
			j, _ := slices.BinarySearch(times, from+int64(window))
			least, most = min(least, j-i), max(most, j-i)
			sum += j - i
			windows++
		}
		ideal := rate * window.Seconds()
		fmt.Printf("  over %v: mean %+.3f %%, least %+.2f %%, most %+.2f %% of the rate (%d windows)\n", window,
			100*(float64(sum)/float64(windows)/ideal-1), 100*(float64(least)/ideal-1), 100*(float64(most)/ideal-1), windows)
	}
	return nil
}

// share is one of the processes: it acquires for so long, and prints when.
func share(addr string, seconds float64) {
	c := connect(addr)
	defer c.Close()
	l := reserve.Must(shared.New(goredis.Client(c), "processes", reserve.Must(pace.Bursty(rate, pace.WithBurst(0))), shared.WithTimeout(time.Second)))
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	times := make([][]int64, 16)
	var wg sync.WaitGroup
	for g := range times {
		wg.Go(func() {
			for time.Now().Before(end) {
				if _, err := l.Acquire(context.Background(), 1); err != nil {
					fatal(err)
				}
				times[g] = append(times[g], time.Now().UnixNano())
			}
		})
	}
	wg.Wait()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, at := range slices.Concat(times...) {
		fmt.Fprintln(out, at)
	}
}
