package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/bench/internal/report"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
)

// crowds measures one hot key: 2,000 permits a second wanted by processes with two callers each, which ask for 64
// permits together.
func crowds(f fault, program string) error {
	w, err := f.world(program)
	defer w.close()
	if err != nil {
		return err
	}
	var rows [][]string
	for _, c := range []struct{ processes, ahead int }{{1, 0}, {8, 0}, {8, 64}, {32, 0}, {32, 64}} {
		var granted, failed, calls atomic.Int64
		var all sync.WaitGroup
		each := max(1, 32/c.processes)
		begin := time.Now()
		for range c.processes {
			l, closes := w.limiter(fmt.Sprint("crowd", c), reserve.Must(pace.Bursty(2000)), shared.WithAhead(c.ahead))
			var callers sync.WaitGroup
			for range 2 {
				callers.Go(func() {
					for time.Since(begin) < 3*time.Second {
						if _, err := l.Acquire(context.Background(), each); err != nil {
							failed.Add(1)
							time.Sleep(10 * time.Millisecond)
						} else {
							granted.Add(int64(each))
						}
					}
				})
			}
			all.Go(func() {
				callers.Wait()
				calls.Add(int64(l.Stats().Calls))
				closes()
			})
		}
		all.Wait()
		took := time.Since(begin).Seconds()
		rows = append(rows, []string{f.name, strconv.Itoa(c.processes), strconv.Itoa(c.ahead),
			fmt.Sprintf("%.0f", float64(granted.Load())/took),
			fmt.Sprintf("%.0f", float64(calls.Load())/took), fmt.Sprint(failed.Load())})
	}
	report.Table(os.Stdout,
		[]string{"store", ">processes", ">bought ahead", ">permits/s of 2,000", ">calls/s", ">failed"}, rows)
	return nil
}
