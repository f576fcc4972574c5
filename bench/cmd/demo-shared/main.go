// Command demo-shared shows a limit that several processes share through a file. It starts three processes, which call as
// fast as the limit lets them, kills one of them in the middle (kill -9), and draws what each of them got. There is no
// server and no set-up. It ends by itself with a table and a picture.
//
//	go run ./cmd/demo-shared                                            # in bench: 8 s
//	go run ./cmd/demo-shared -processes 8 -rate 500 -seconds 60 -kill=false
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/nextfree/pace/bench/internal/command"
	"github.com/nextfree/pace/bench/internal/report"
)

// An experiment is what is done.
type experiment struct {
	processes, callers int // so many callers in each process
	rate               float64
	lasts              time.Duration
	kill               bool // the last process, in the middle
	dir                string
}

func main() {
	var e experiment
	flag.IntVar(&e.processes, "processes", 3, "how many processes share the limit")
	flag.IntVar(&e.callers, "callers", 4, "how many callers each of them has")
	flag.Float64Var(&e.rate, "rate", 200, "the limit, in calls a second")
	seconds := flag.Float64("seconds", 8, "how long they call")
	flag.BoolVar(&e.kill, "kill", true, "kill the last process in the middle")
	out := flag.String("out", "out/demo-shared.png", "the picture's file")
	worker := flag.String("worker", "", "be one of the processes, on this folder (internal)")
	command.Main("demo-shared", func() string {
		e.lasts = time.Duration(*seconds * float64(time.Second))
		if e.processes < 1 || e.callers < 1 || !(e.rate > 0) || e.lasts <= 0 {
			return "-processes, -callers, -rate and -seconds must be positive"
		}
		return ""
	}, func(ctx context.Context) error {
		if *worker != "" {
			return work(ctx, *worker, e, os.Stdout)
		}
		return run(ctx, e, *out)
	})
}

func run(ctx context.Context, e experiment, out string) (err error) {
	if e.dir, err = os.MkdirTemp("", "pace-demo"); err != nil {
		return err
	}
	defer os.RemoveAll(e.dir)
	return command.Draw(os.Stdout, out, func() (func(io.Writer) error, error) {
		fmt.Printf("%d processes share one limit of %g calls/s through a file in %s: no server.\n", e.processes, e.rate, e.dir)
		fmt.Printf("Each has %d callers, who call as fast as the limit lets them.", e.callers)
		if e.kill {
			fmt.Printf(" Process %d is killed (kill -9) after %.0f s.", e.processes, e.killed().Seconds())
		}
		fmt.Printf("\nThis takes %.0f s.\n\n", e.lasts.Seconds())
		calls, begin, err := watch(ctx, e)
		if err != nil {
			return nil, err
		}
		if len(calls) == 0 {
			return nil, errors.New("there were no calls")
		}
		j := judge(e, calls)
		fmt.Println()
		report.Table(os.Stdout, []string{"", ">calls", ">calls/s"}, j.rows)
		fmt.Printf("\nTogether they used %.1f %% of the limit. %s\n", 100*j.used, j.verdict())
		fmt.Printf("To decide a call took %v (the median; %v for 99 %%). The picture shows what each process got.\n", j.median, j.most)
		return func(w io.Writer) error { return draw(w, e, begin, calls) }, nil
	})
}

// killed returns when the last process is killed.
func (e *experiment) killed() time.Duration { return e.lasts / 2 }
