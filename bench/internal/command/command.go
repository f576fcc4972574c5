// Package command is how the benchmarks' commands begin and end.
package command

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
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

// Draw runs what measures, and writes the picture that it returns to a file. If the file can't be written, it says so
// before anything is measured. An old picture stays as it is until there is a new one.
func Draw(w io.Writer, out string, measure func() (draw func(io.Writer) error, err error)) error {
	if err := writable(out); err != nil {
		return fmt.Errorf("can't write the picture: %w", err)
	}
	draw, err := measure()
	if err != nil {
		return err
	}
	var picture bytes.Buffer
	if err := draw(&picture); err != nil {
		return err
	}
	if err := os.WriteFile(out, picture.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nPicture: %s\n", out)
	return nil
}

// writable makes a file's folder, and reports why the file can't be written.
func writable(name string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	_, err := os.Lstat(name)
	fresh := errors.Is(err, os.ErrNotExist)
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	err = file.Close()
	if fresh {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}
