// Command demo shows what pace is for. It starts an HTTP API on this machine that
// allows 50 calls a second, with a burst of 10, and answers 429 to those beyond; then
// 64 goroutines make 300 calls to it, first unpaced and then paced by pace. It ends
// by itself in under 30 seconds with a table and a picture.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/nextfree/pace/bench/internal/picture"
	"github.com/nextfree/pace/bench/internal/report"
)

const (
	callsPerSecond = 50 // that the API allows
	burst          = 10 // at one moment
	calls          = 300
	goroutines     = 64
	// A half is stopped after this, so that the demo ends in any case. Unpaced calls
	// that meet each other again and again take 29 s, at worst.
	limit = 20 * time.Second
)

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "the address of the API; port 0: any that is free")
	out := flag.String("out", "out/demo.png", "the picture's file")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "demo: unexpected argument %q; see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, *addr, *out)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "demo: interrupted")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, addr, out string) (err error) {
	file, err := picture.Create(out)
	if err != nil {
		return fmt.Errorf("can't write the picture: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("can't start the API: %w", err)
	}
	api := startAPI(listener)
	defer api.close()

	fmt.Printf("%s is an API that allows %d calls/s with a burst of %d, and answers any other\n", api.url, callsPerSecond, burst)
	fmt.Printf("with 429 and Retry-After: 1. A call takes it %d to %d ms. %d goroutines make %d calls; one\n",
		fastest.Milliseconds(), slowest.Milliseconds(), goroutines, calls)
	fmt.Printf("that is refused waits as long as Retry-After says, and tries again.\n\n")
	var halves []half
	for _, name := range []string{unpaced, paced} {
		api.reset()
		h, err := makeCalls(ctx, name, api.url)
		if err != nil {
			return err
		}
		h.seen = api.seen()
		halves = append(halves, h)
	}

	fmt.Println()
	var rows [][]string
	for _, h := range halves {
		rows = append(rows, h.row())
	}
	report.Table(os.Stdout, []string{"", ">time", ">calls answered", ">calls sent", ">refused", ">wasted", ">longest wait"}, rows)
	atBest := time.Duration(calls-burst) * time.Second / callsPerSecond
	fmt.Printf("\nAt best it takes %.1f s: %d calls at once, and the other %d at %d/s.\n", atBest.Seconds(), burst, calls-burst, callsPerSecond)
	if err := file.Save(func(w io.Writer) error { return draw(w, halves) }); err != nil {
		return fmt.Errorf("can't write the picture: %w", err)
	}
	fmt.Printf("Picture, calls in every 100 ms: %s\n", out)
	return nil
}
