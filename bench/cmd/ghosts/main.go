// Command ghosts measures for how long the next caller waits after all callers before it have given up: it should be
// for one permit, in whichever order they did. It prints a Markdown table and draws a picture. On a fake clock, where
// a limiter has one, so that these numbers are exact.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/nextfree/pace/bench/internal/command"
	"github.com/nextfree/pace/bench/internal/report"
)

const permitsPerSecond = 10

func main() {
	out := flag.String("out", "out/ghosts.png", "the picture's file")
	command.Main("ghosts", nil, func(context.Context) error { return run(os.Stdout, *out) })
}

func run(w io.Writer, out string) error {
	return command.Draw(w, out, func() (func(io.Writer) error, error) {
		waits := table(w)
		return func(w io.Writer) error { return drawBars(w, waits) }, nil
	})
}

// table prints the waits, and returns them by the contender's name.
func table(w io.Writer) map[string][]time.Duration {
	fmt.Fprintf(w, "At %d/s. The next caller's wait, in seconds, after all others have given up\n\n", permitsPerSecond)
	header := []string{">callers", "limiter"}
	for _, o := range orders {
		header = append(header, ">"+o.name)
	}
	waits := map[string][]time.Duration{}
	var rows [][]string
	for _, n := range queues {
		for _, c := range contenders {
			row := []string{fmt.Sprint(n), c.name}
			for _, o := range orders {
				wait := nextWait(c, n, o)
				waits[c.name] = append(waits[c.name], wait)
				row = append(row, fmt.Sprintf("%.2f", wait.Seconds()))
			}
			rows = append(rows, row)
		}
	}
	report.Table(w, header, rows)
	return waits
}
