package outbound

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// bubble runs f with a server of real HTTP over pipes, in a bubble of fake time. The
// base transport leads all hosts to it.
func bubble(t *testing.T, handler http.HandlerFunc, f func(t *testing.T, base *http.Transport)) {
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		server := &http.Server{Handler: handler}
		go server.Serve(l)
		base := &http.Transport{DialContext: l.dial, MaxIdleConnsPerHost: 1 << 20}
		defer synctest.Wait()
		defer server.Close()
		defer base.CloseIdleConnections()
		f(t, base)
	})
}

// pipes is a net.Listener whose connections are pipes.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	dialed atomic.Int64
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		p.dialed.Add(1)
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// A journal is what a server saw: when, since the journal was made.
type journal struct {
	begin time.Time
	mu    sync.Mutex
	at    []time.Duration
	paths []string
}

func newJournal() *journal { return &journal{begin: time.Now()} }

// note records a request and returns its number, from 1.
func (j *journal) note(r *http.Request) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.at = append(j.at, time.Since(j.begin))
	j.paths = append(j.paths, r.URL.Path)
	return len(j.at)
}

func (j *journal) times() []time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]time.Duration(nil), j.at...)
}

// get makes a request, reads its response to the end, and returns the status: 0 for an error.
func get(client *http.Client, url string) (int, error) {
	r, err := client.Get(url)
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	_, err = io.Copy(io.Discard, r.Body)
	return r.StatusCode, err
}

// getAll makes n requests at the same time, and returns how many of each status came.
func getAll(client *http.Client, url string, n int) map[int]int {
	var mu sync.Mutex
	var all sync.WaitGroup
	statuses := map[int]int{}
	for range n {
		all.Go(func() {
			status, _ := get(client, url)
			mu.Lock()
			statuses[status]++
			mu.Unlock()
		})
	}
	all.Wait()
	return statuses
}

func (j *journal) order() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string(nil), j.paths...)
}

func ms(n ...int) (d []time.Duration) {
	for _, n := range n {
		d = append(d, time.Duration(n)*time.Millisecond)
	}
	return d
}

// body is a request's body that knows whether it was closed.
type body struct {
	io.Reader
	closed atomic.Int64
}

func (b *body) Close() error { b.closed.Add(1); return nil }

var errGone = errors.New("the caller has gone")

// pass lets time pass in a bubble.
func pass(d time.Duration) { <-time.After(d) }

// received is when some responses were received; their Date says the same.
var received = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// headers makes a header out of lines.
func headers(lines ...string) http.Header {
	h := http.Header{}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		h.Add(name, value)
	}
	return h
}
