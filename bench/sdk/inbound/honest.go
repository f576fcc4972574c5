package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
)

const (
	// The flood calls the handler so many times in a millisecond, which takes a part of one core: the
	// question is whether its keys are in the way of others, not whether a busy machine is slower.
	floodPerMillisecond = 50
	// The kinds of flood take turns, so that a noisy moment does not hit one of them alone.
	floodTurn     = 500 * time.Millisecond
	honestClients = 4
)

// A floodKind is a middleware with a server of its own, and the clients that flood it.
type floodKind struct {
	name    string
	client  func(i int) int64 // number of the i-th request's network; nil: there is no flood
	handler http.Handler
	address string
	stop    func() error

	mu     sync.Mutex
	inside []time.Duration // how long the middleware took for each honest request, its answer included
}

// timed is the handler that the server has: the flood does not go through it.
func (k *floodKind) timed(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	k.handler.ServeHTTP(w, r)
	took := time.Since(begin)
	k.mu.Lock()
	k.inside = append(k.inside, took)
	k.mu.Unlock()
}

// measureHonest says how long honest clients wait for answers over connections, and how many of
// them are served, while so many keys flood the middleware, each with one request. The keys are the
// /64 networks of an IPv6 /43. Half of the honest requests are by clients that come often, the others by
// clients that are new each time.
func measureHonest(out io.Writer, keys int) error {
	fmt.Fprint(out, "## Honest clients during a flood\n\n")
	fmt.Fprintln(out, "Every client has a million requests, one more in five minutes, and is remembered that long after one; the flood")
	fmt.Fprintln(out, "is at 50,000 requests a second, in turns of half a second. Honest clients send 2,000 a second, over 4 connections.")
	fmt.Fprintln(out)
	kinds := []*floodKind{
		{name: "no flood"},
		{name: "one client", client: func(int) int64 { return 1 }},
		{name: fmt.Sprintf("%d clients of an IPv6 /43", keys), client: func(i int) int64 { return int64(i) }},
	}
	before := heap()
	for _, k := range kinds {
		if err := k.serve(); err != nil {
			return err
		}
	}
	var turn atomic.Int32 // whose it is
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var all sync.WaitGroup
	clients := make([]honestClient, honestClients)
	for i := range clients {
		clients[i].seen = make([]honest, len(kinds))
		all.Go(func() { clients[i].err = clients[i].run(ctx, kinds, &turn, i) })
	}
	flood(kinds, &turn, keys)
	cancel()
	all.Wait()
	memory := heap() - before
	for _, k := range kinds {
		if err := k.stop(); err != nil {
			return err
		}
	}

	fmt.Fprintln(out, "| | in the middleware, p50 | p99 | of that without a flood | over connections, p50 | p99 | of that without a flood | new clients served |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|")
	var without [2]time.Duration
	for i, k := range kinds {
		var sum honest
		for _, c := range clients {
			if c.err != nil {
				return c.err
			}
			sum.times = append(sum.times, c.seen[i].times...)
			sum.new += c.seen[i].new
			sum.served += c.seen[i].served
		}
		fmt.Fprintf(out, "| %s |", k.name)
		for j, times := range [][]time.Duration{k.inside, sum.times} {
			slices.Sort(times)
			p50, p99 := times[len(times)/2], times[len(times)*99/100]
			if i == 0 {
				without[j] = p99
			}
			fmt.Fprintf(out, " %.1f µs | %.1f µs | %.2f |", p50.Seconds()*1e6, p99.Seconds()*1e6, float64(p99)/float64(without[j]))
		}
		fmt.Fprintf(out, " %d of %d |\n", sum.served, sum.new)
	}
	fmt.Fprintf(out, "\nMemory of all together afterwards: %.0f MB.\n\n", float64(memory)/1e6)
	return nil
}

// serve starts the server.
func (k *floodKind) serve() error {
	header, err := inbound.TrustedHeader("X-Client")
	if err != nil {
		return err
	}
	key := func(r *http.Request) (netip.Addr, error) {
		if r.ContentLength == 0 {
			return header(r)
		}
		return floodAddress(r.ContentLength), nil
	}
	policy, err := pace.Bursty(1./300, pace.WithCapacity(1e6), reserve.WithStored(1e6), reserve.PayUpfront())
	if err != nil {
		return err
	}
	m, err := inbound.New([]inbound.Tier{inbound.PerKey("client", key, policy)})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	k.handler, k.address = m.Handler(hello), l.Addr().String()
	server := &http.Server{Handler: http.HandlerFunc(k.timed)}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	k.stop = func() error {
		if err := server.Close(); err != nil {
			return err
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}
	return nil
}

// floodAddress is the address that the flood's requests carry as a length, since making headers of it would
// cost more than the middleware does: the n-th /64 of 2001:db8::/32.
func floodAddress(n int64) netip.Addr {
	a := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	binary.BigEndian.PutUint32(a[4:], uint32(n))
	return netip.AddrFrom16(a)
}

// flood gives the kinds their turns until the last one has sent a request of each key.
func flood(kinds []*floodKind, turn *atomic.Int32, keys int) {
	w := &recorder{header: http.Header{}}
	r := &http.Request{Method: "GET", Header: http.Header{}}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	sent := make([]int, len(kinds))
	for begin := time.Now(); sent[len(kinds)-1] < keys; {
		<-tick.C
		now := int(time.Since(begin)/floodTurn) % len(kinds)
		turn.Store(int32(now))
		k := kinds[now]
		if k.client == nil {
			continue
		}
		for range floodPerMillisecond {
			clear(w.header)
			r.ContentLength = 1 + k.client(sent[now])
			k.handler.ServeHTTP(w, r)
			sent[now]++
			runtime.Gosched() // a real flood does not keep a core to itself either
		}
	}
}

// honest is what honest clients saw of one kind.
type honest struct {
	times       []time.Duration
	new, served int // of the requests of new clients
}

// An honestClient sends 500 requests a second, to the kind whose turn it is.
type honestClient struct {
	seen []honest
	err  error
}

func (c *honestClient) run(ctx context.Context, kinds []*floodKind, turn *atomic.Int32, number int) error {
	conns, answers := make([]net.Conn, len(kinds)), make([]*bufio.Reader, len(kinds))
	for i, k := range kinds {
		conn, err := net.Dial("tcp", k.address)
		if err != nil {
			return err
		}
		defer conn.Close()
		conns[i], answers[i] = conn, bufio.NewReader(conn)
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := turn.Load()
		isNew, from := i%2 == 0, fmt.Sprintf("192.0.2.%d", number)
		if isNew {
			from = fmt.Sprintf("%d.%d.%d.%d", 100+number, i>>1&255, i>>9&255, i>>17&255)
		}
		begin := time.Now()
		if _, err := fmt.Fprintf(conns[now], "GET / HTTP/1.1\r\nHost: localhost\r\nX-Client: %s\r\n\r\n", from); err != nil {
			return err
		}
		res, err := http.ReadResponse(answers[now], nil)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			return err
		}
		seen := &c.seen[now]
		seen.times = append(seen.times, time.Since(begin))
		if isNew {
			seen.new++
			if res.StatusCode == http.StatusOK {
				seen.served++
			}
		}
	}
}
