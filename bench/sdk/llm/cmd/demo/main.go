// Command demo shows what pace does for calls to a language model. It starts a server on this
// machine that speaks as OpenAI does and limits requests and tokens in any 2 s, as OpenAI does in a
// minute; then 32 goroutines make 200 streamed calls to it with openai-go, first unpaced, with the
// retries that openai-go makes itself, and then paced by pace. It ends by itself in under 60
// seconds with a table and a picture.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/nextfree/pace/bench/sdk/llm/server"

	"github.com/nextfree/pace/bench/internal/picture"
	"github.com/nextfree/pace/bench/internal/report"
)

const (
	calls      = 200
	goroutines = 32
	// A half is stopped after this, so that the demo ends in any case.
	longest = 40 * time.Second
)

// What the server allows in any window, which is 2 s here so that nobody has to wait for minutes.
const (
	minute   = 2 * time.Second
	requests = 15
	tokens   = 14_000
)

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "the address of the server; port 0: any that is free")
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
		return fmt.Errorf("can't start the server: %w", err)
	}
	api := server.New(server.Quota{Requests: requests, Tokens: tokens, Window: minute})
	httpServer := &http.Server{Handler: api}
	go httpServer.Serve(listener) // until it is closed
	defer httpServer.Close()
	url := "http://" + listener.Addr().String() + "/v1"

	fmt.Printf("%s speaks as OpenAI does, and allows %d requests and %d tokens in any %v.\n", url, requests, tokens, minute)
	fmt.Printf("%d goroutines make %d streamed calls with openai-go, which tries a call that is refused up to twice again.\n\n", goroutines, calls)
	var halves []half
	for _, name := range []string{unpaced, paced} {
		api.Reset()
		h, err := makeCalls(ctx, name, url)
		if err != nil {
			return err
		}
		h.seen, h.counts = api.Records(), api.Counts()
		halves = append(halves, h)
	}

	fmt.Println()
	var rows [][]string
	for _, h := range halves {
		rows = append(rows, h.row())
	}
	report.Table(os.Stdout, header, rows)
	fmt.Printf("\nTokens are those of prompts and replies: charged by pace, and used by the server's count. At best it takes %.1f s.\n", atBest().Seconds())
	if err := file.Save(func(w io.Writer) error { return draw(w, halves) }); err != nil {
		return fmt.Errorf("can't write the picture: %w", err)
	}
	fmt.Printf("Picture, tokens per second and calls: %s\n", out)
	return nil
}

// atBest is the time that all calls take if what the server allows is used as soon as it can be,
// and replies take no time.
func atBest() time.Duration {
	all := 0
	for _, j := range jobs() {
		all += j.prompt + min(j.reply, j.most)
	}
	return max(time.Duration(calls-requests)*minute/requests, time.Duration(all-tokens)*minute/tokens)
}
