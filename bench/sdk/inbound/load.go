package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/nextfree/pace/bench/internal/cpu"
)

// connections is how many clients send requests at the same time, one after another
// each, on a connection that stays open.
const connections = 32

// measureLoad serves on 127.0.0.1 and sends requests for a while, to each contender
// in turn and in rounds, and prints the medians.
func measureLoad(out io.Writer, rounds int, each time.Duration) error {
	fmt.Fprintf(out, "## Over %d connections on 127.0.0.1, per client and global (median of %d rounds of %v)\n\n", connections, rounds, each)
	fmt.Fprintln(out, "Server and clients share the machine's cores.")
	fmt.Fprintln(out)
	fmt.Fprintln(out, "| | requests/s | of the bare handler's | processor time for each, clients' included | p50 | p99 |\n|---|---|---|---|---|---|")
	results := make([][]load, len(contenders))
	for range rounds {
		for i, c := range contenders {
			got, err := measureConnections(c, each)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			results[i] = append(results[i], got)
		}
	}
	var bareRate float64
	for i, c := range contenders {
		slices.SortFunc(results[i], func(a, b load) int { return int(a.perSecond - b.perSecond) })
		m := results[i][len(results[i])/2]
		if i == 0 {
			bareRate = m.perSecond
		}
		fmt.Fprintf(out, "| %s | %.0f | %.2f | %v | %v | %v |\n", c.name, m.perSecond, m.perSecond/bareRate, m.cpu.Round(10*time.Nanosecond), m.p50.Round(time.Microsecond), m.p99.Round(time.Microsecond))
	}
	fmt.Fprintln(out)
	return nil
}

// load is what one round came to.
type load struct {
	perSecond float64
	cpu       time.Duration
	p50, p99  time.Duration
}

func measureConnections(c contender, each time.Duration) (load, error) {
	wrap, err := c.build([]tier{{"client", 1_000_000_000, 24 * time.Hour, true}, {"global", 1_000_000_000, time.Minute, false}})
	if err != nil {
		return load{}, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return load{}, err
	}
	server := &http.Server{Handler: wrap(hello)}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()

	ctx, cancel := context.WithTimeout(context.Background(), each)
	defer cancel()
	times := make([][]time.Duration, connections)
	errs := make([]error, connections)
	var all sync.WaitGroup
	begin, used := time.Now(), cpu.Time()
	for i := range connections {
		all.Go(func() { times[i], errs[i] = client(ctx, l.Addr().String()) })
	}
	all.Wait()
	took := time.Since(begin)
	used = cpu.Time() - used
	if err := server.Close(); err != nil {
		return load{}, err
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return load{}, err
	}
	if err := errors.Join(errs...); err != nil {
		return load{}, err
	}
	sorted := slices.Concat(times...)
	slices.Sort(sorted)
	return load{
		perSecond: float64(len(sorted)) / took.Seconds(),
		cpu:       used / time.Duration(len(sorted)),
		p50:       sorted[len(sorted)/2],
		p99:       sorted[len(sorted)*99/100],
	}, nil
}

// client sends requests on one connection until the context ends, and returns how
// long each took. It writes them itself: http.Client would cost more than the server.
func client(ctx context.Context, address string) (times []time.Duration, err error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	request := []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	answers := bufio.NewReader(conn)
	for ctx.Err() == nil {
		begin := time.Now()
		if _, err := conn.Write(request); err != nil {
			return nil, err
		}
		res, err := http.ReadResponse(answers, nil)
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			return nil, err
		}
		if res.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("answered %s", res.Status)
		}
		times = append(times, time.Since(begin))
	}
	return times, nil
}
