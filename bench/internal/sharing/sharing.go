// Package sharing is a demo of a limit that several processes share through a file. It starts processes, which call
// as fast as the limit lets them, kills one of them in the middle (kill -9), and draws what each of them got. There
// is no server and no set-up.
package sharing

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

// An Experiment is what is done.
type Experiment struct {
	Processes int
	Callers   int // of each process
	Rate      float64
	Lasts     time.Duration
	Kill      bool // the last process, in the middle

	Dir string // of the file
}

// Flags adds the flags that set an experiment.
func Flags() *Experiment {
	var e Experiment
	flag.IntVar(&e.Processes, "processes", 3, "with -shared: how many processes share the limit")
	flag.IntVar(&e.Callers, "callers", 4, "with -shared: how many callers each of them has")
	flag.Float64Var(&e.Rate, "rate", 200, "with -shared: the limit, in calls a second")
	flag.DurationVar(&e.Lasts, "lasts", 8*time.Second, "with -shared: how long they call")
	flag.BoolVar(&e.Kill, "kill", true, "with -shared: kill the last process in the middle")
	return &e
}

// Misuse says which flag makes no sense; "": none.
func (e *Experiment) Misuse() string {
	if e.Processes < 1 || e.Callers < 1 || !(e.Rate > 0) || e.Lasts <= 0 {
		return "-processes, -callers, -rate and -lasts must be positive"
	}
	return ""
}

// Run runs the experiment, prints a table and draws a picture.
func (e Experiment) Run(ctx context.Context, out string) (err error) {
	if e.Dir, err = os.MkdirTemp("", "pace-demo"); err != nil {
		return err
	}
	defer os.RemoveAll(e.Dir)
	return command.Draw(os.Stdout, out, func() (func(io.Writer) error, error) {
		fmt.Printf("%d processes share one limit of %g calls/s through a file in %s: no server.\n",
			e.Processes, e.Rate, e.Dir)
		fmt.Printf("Each has %d callers, who call as fast as the limit lets them.", e.Callers)
		if e.Kill {
			fmt.Printf(" Process %d is killed (kill -9) after %.0f s.", e.Processes, e.killed().Seconds())
		}
		fmt.Printf("\nThis takes %.0f s.\n\n", e.Lasts.Seconds())
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
		fmt.Printf("To decide a call took %v (the median; %v for 99 %%). The picture shows what each process got.\n",
			j.median, j.most)
		return func(w io.Writer) error { return draw(w, e, begin, calls) }, nil
	})
}

// killed returns when the last process is killed.
func (e Experiment) killed() time.Duration { return e.Lasts / 2 }
