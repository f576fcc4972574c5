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
	"os/signal"
	"syscall"
	"time"

	"github.com/nextfree/pace/bench/internal/picture"
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
	flag.Parse()
	e.lasts = time.Duration(*seconds * float64(time.Second))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case flag.NArg() > 0 || e.processes < 1 || e.callers < 1 || !(e.rate > 0) || e.lasts <= 0:
		fmt.Fprintln(os.Stderr, "demo-shared: bad arguments; see -help")
		os.Exit(2)
	case *worker != "":
		err = work(ctx, *worker, e, os.Stdout)
	default:
		err = run(ctx, e, *out)
	}
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "demo-shared: interrupted")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "demo-shared:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, e experiment, out string) (err error) {
	file, err := picture.Create(out)
	if err != nil {
		return fmt.Errorf("can't write the picture: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if e.dir, err = os.MkdirTemp("", "pace-demo"); err != nil {
		return err
	}
	defer os.RemoveAll(e.dir)
	fmt.Printf("%d processes share one limit of %g calls/s through a file in %s: no server.\n", e.processes, e.rate, e.dir)
	fmt.Printf("Each has %d callers, who call as fast as the limit lets them.", e.callers)
	if e.kill {
		fmt.Printf(" Process %d is killed (kill -9) after %.0f s.", e.processes, e.killed().Seconds())
	}
	fmt.Printf("\nThis takes %.0f s.\n\n", e.lasts.Seconds())
	calls, begin, err := watch(ctx, e)
	if err != nil {
		return err
	}
	if len(calls) == 0 {
		return errors.New("there were no calls")
	}
	j := judge(e, calls)
	fmt.Println()
	report.Table(os.Stdout, []string{"", ">calls", ">calls/s"}, j.rows)
	fmt.Printf("\nTogether they used %.1f %% of the limit. %s\n", 100*j.used, j.verdict())
	fmt.Printf("To decide a call took %v (the median; %v for 99 %%).\n", j.median, j.most)
	if err := file.Save(func(w io.Writer) error { return draw(w, e, begin, calls) }); err != nil {
		return fmt.Errorf("can't write the picture: %w", err)
	}
	fmt.Printf("Picture, what each process got: %s\n", out)
	return nil
}

// killed returns when the last process is killed.
func (e *experiment) killed() time.Duration { return e.lasts / 2 }
