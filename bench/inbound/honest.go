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

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
)

// The flood calls the handler this many times every millisecond, which takes a part of one core: what is measured
// is what its keys do to others, and not that a machine which is busy answers later.
const floodPerMillisecond = 50

// measureHonest says how long honest clients wait for answers over connections, and how many of them are served,
// while so many keys flood the middleware, each with one request. The keys are the /64 networks of one
// IPv6 /43. Half of the honest requests are by a client that comes often, the others by one that is new each time.
func measureHonest(out io.Writer, rounds, keys int) error {
	fmt.Fprintf(out, "## Honest clients during a flood (median of %d rounds)\n\n", rounds)
	fmt.Fprintln(out, "Every client has a million requests, one more a minute, and is remembered for a minute after each; the flood is at")
	fmt.Fprintln(out, "50,000 requests a second. Honest clients send 2,000 a second, over 4 connections.")
	fmt.Fprintln(out)
	fmt.Fprintln(out, "| | p50 | p99 | p99, of that without a flood | new clients served | memory after |\n|---|---|---|---|---|---|")
	kinds := []struct {
		name  string
		flood func(i int) string // the client of the i-th request; nil: there is no flood
	}{
		{"no flood", nil},
		{"one client", func(int) string { return "2001:db8:f::1" }},
		{fmt.Sprintf("%d clients of an IPv6 /43", keys), func(i int) string { return fmt.Sprintf("2001:db8:%x:%x::1", i>>16, i&0xffff) }},
	}
	results := make([][]honest, len(kinds))
	for range rounds {
		for i, k := range kinds {
			got, err := floodWith(k.flood, keys)
			if err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			results[i] = append(results[i], got)
		}
	}
	var without time.Duration
	for i, k := range kinds {
		slices.SortFunc(results[i], func(a, b honest) int { return int(a.p99 - b.p99) })
		m := results[i][len(results[i])/2]
		if i == 0 {
			without = m.p99
		}
		fmt.Fprintf(out, "| %s | %v | %v | %.2f | %d of %d | %.1f MB |\n", k.name, m.p50.Round(time.Microsecond), m.p99.Round(time.Microsecond),
			float64(m.p99)/float64(without), m.served, m.new, float64(m.memory)/1e6)
	}
	fmt.Fprintln(out)
	return nil
}

// honest is what honest clients saw in one round.
type honest struct {
	p50, p99    time.Duration
	new, served int // of the requests of new clients
	memory      int64
}

func floodWith(client func(i int) string, keys int) (honest, error) {
	key, err := inbound.TrustedHeader("X-Client")
	if err != nil {
		return honest{}, err
	}
	// One request makes a client one to remember for a minute, which is longer than the flood takes.
	policy, err := pace.Bursty(1./60, pace.WithCapacity(1e6), reserve.WithStored(1e6), reserve.PayUpfront())
	if err != nil {
		return honest{}, err
	}
	m, err := inbound.New([]inbound.Tier{inbound.PerKey("client", key, policy)})
	if err != nil {
		return honest{}, err
	}
	before := heap()
	h := m.Handler(hello)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return honest{}, err
	}
	server := &http.Server{Handler: h}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var all sync.WaitGroup
	const clients = 4
	var got [clients]honestClient
	for i := range got {
		all.Go(func() { got[i].run(ctx, l.Addr().String(), i) })
	}
	flood(client, h, keys)
	cancel()
	all.Wait()
	res := honest{memory: heap() - before}
	if err := server.Close(); err != nil {
		return honest{}, err
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return honest{}, err
	}
	var times []time.Duration
	for i := range got {
		if got[i].err != nil {
			return honest{}, got[i].err
		}
		times = append(times, got[i].times...)
		res.new += got[i].new
		res.served += got[i].served
	}
	slices.Sort(times)
	res.p50, res.p99 = times[len(times)/2], times[len(times)*99/100]
	return res, nil
}

// flood sends a request of each key, or lets as much time pass.
func flood(client func(i int) string, h http.Handler, keys int) {
	w := &recorder{header: http.Header{}}
	r := &http.Request{Method: "GET", Header: http.Header{}}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for i := range keys {
		if i%floodPerMillisecond == 0 {
			<-tick.C
		}
		if client != nil {
			clear(w.header)
			r.Header["X-Client"] = []string{client(i)}
			h.ServeHTTP(w, r)
		}
	}
}

// An honestClient sends 500 requests a second on one connection.
type honestClient struct {
	times       []time.Duration
	new, served int
	err         error
}

func (c *honestClient) run(ctx context.Context, address string, number int) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		c.err = err
		return
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		from := fmt.Sprintf("192.0.2.%d", number)
		if i%2 == 0 {
			from = fmt.Sprintf("%d.%d.%d.%d", 100+number, i>>17&255, i>>9&255, i>>1&255)
		}
		begin := time.Now()
		if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Client: %s\r\n\r\n", from); err != nil {
			c.err = err
			return
		}
		res, err := http.ReadResponse(answers, nil)
		if err != nil {
			c.err = err
			return
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			c.err = err
			return
		}
		c.times = append(c.times, time.Since(begin))
		if i%2 == 0 {
			c.new++
			if res.StatusCode == http.StatusOK {
				c.served++
			}
		}
	}
}
