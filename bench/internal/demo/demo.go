// Package demo is what the demos have in common: a server on this machine is called twice, unpaced and paced by
// pace, and a table and a picture say what became of the calls.
package demo

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/bench/internal/command"
	"github.com/nextfree/pace/bench/internal/report"
)

// The names of the parts that all demos have.
const Unpaced, Paced = "unpaced", "paced"

// A Demo is what differs. S is the server. H is what became of the calls of a part.
type Demo[S http.Handler, H interface{ Row() []string }] struct {
	Parts  []string // in this order; nil: Unpaced and Paced
	Server func() S // a new one, for a part
	Intro  func(url string) string
	Half   func(ctx context.Context, name, url string, s S) (H, error)
	Header []string
	Outro  string
	Draw   func(w io.Writer, halves []H) error
}

// Flags adds the flags of all demos.
func Flags() (addr, out *string) {
	return flag.String("addr", "127.0.0.1:0", "the address of the server; port 0: any that is free"),
		flag.String("out", "out/demo.png", "the picture's file")
}

// Run runs the demo.
func (d Demo[S, H]) Run(ctx context.Context, addr, out string) error {
	return command.Draw(os.Stdout, out, func() (func(io.Writer) error, error) {
		listener, err := net.Listen("tcp", addr)
		if err != nil {
			return nil, fmt.Errorf("can't start the server: %w", err)
		}
		var current atomic.Pointer[S]
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			(*current.Load()).ServeHTTP(w, r)
		})}
		go server.Serve(listener) // until it is closed
		defer server.Close()
		url := "http://" + listener.Addr().String()
		fmt.Println(d.Intro(url))
		var halves []H
		var rows [][]string
		parts := d.Parts
		if parts == nil {
			parts = []string{Unpaced, Paced}
		}
		for _, name := range parts {
			s := d.Server()
			current.Store(&s)
			h, err := d.Half(ctx, name, url, s)
			if err != nil {
				return nil, err
			}
			halves, rows = append(halves, h), append(rows, h.Row())
		}
		fmt.Println()
		report.Table(os.Stdout, d.Header, rows)
		fmt.Printf("\n%s\n", d.Outro)
		return func(w io.Writer) error { return d.Draw(w, halves) }, nil
	})
}

// An Outcome is what all demos say of a part.
type Outcome struct {
	Name             string
	Took, Longest    time.Duration // in all; that a goroutine waited for one answer
	Answered, Failed int
}

// Work makes the calls, one for each job, in some goroutines. It stops when the context ends.
func Work[J any](ctx context.Context, name string, goroutines int, jobs []J,
	call func(ctx context.Context, job J) error) Outcome {
	todo := make(chan J, len(jobs))
	for _, j := range jobs {
		todo <- j
	}
	close(todo)
	o := Outcome{Name: name}
	var mu sync.Mutex // guards o
	var all sync.WaitGroup
	bar := newProgress(name, len(jobs))
	begin := time.Now()
	for range goroutines {
		all.Go(func() {
			for j := range todo {
				if ctx.Err() != nil {
					return
				}
				since := time.Now()
				err := call(ctx, j)
				mu.Lock()
				o.Longest = max(o.Longest, time.Since(since))
				if err == nil {
					o.Answered++
				} else {
					o.Failed++
				}
				bar.done(o.Answered, o.Failed)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	o.Took = time.Since(begin)
	bar.end()
	return o
}

// Time says how long all calls took, or after which time they were stopped.
func (o Outcome) Time(stopped bool) string {
	took := fmt.Sprintf("%.1f s", o.Took.Seconds())
	if stopped {
		took = "stopped after " + took
	}
	return took
}

// A Call is when a server saw it, since the first.
type Call struct {
	At      time.Duration
	Refused bool
}

// Count counts the calls of every step: all calls, and answered ones.
func Count(seen []Call, step time.Duration) (all, answered []float64) {
	for _, c := range seen {
		i := int(c.At / step)
		for i >= len(all) {
			all, answered = append(all, 0), append(answered, 0)
		}
		all[i]++
		if !c.Refused {
			answered[i]++
		}
	}
	return all, answered
}
