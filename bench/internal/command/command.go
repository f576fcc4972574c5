// Package command is how the benchmarks' commands begin and end.
package command

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/nextfree/pace/bench/internal/picture"
)

// Main parses the flags, runs a command until it is interrupted, and ends the process: with 2 if there
// are arguments or the flags make no sense (misuse then says why), 130 after an interruption, 1 after an error.
func Main(name string, misuse func() string, run func(ctx context.Context) error) {
	flag.Parse()
	why := ""
	if flag.NArg() > 0 {
		why = fmt.Sprintf("unexpected argument %q", flag.Arg(0))
	} else if misuse != nil {
		why = misuse()
	}
	if why != "" {
		fmt.Fprintf(os.Stderr, "%s: %s; see -help\n", name, why)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintf(os.Stderr, "%s: interrupted\n", name)
		os.Exit(130)
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Draw runs what measures, and then has the picture drawn that it returns. If the file can't be written, it says
// so before anything is measured.
func Draw(w io.Writer, out string, measure func() (draw func(io.Writer) error, err error)) error {
	file, err := picture.Create(out)
	if err != nil {
		return fmt.Errorf("can't write the picture: %w", err)
	}
	draw, err := measure()
	if err == nil {
		if err = file.Save(draw); err == nil {
			fmt.Fprintf(w, "\nPicture: %s\n", out)
		}
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	return err
}
