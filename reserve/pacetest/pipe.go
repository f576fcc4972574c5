package pacetest

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/isnil"
)

// Client returns a client whose requests, to any host, reach the handler by pipes in memory (HTTP/1.1), in a bubble
// of testing/synctest too. Give its Transport to outbound.New. The end of the test closes the connections within 5 s.
// It panics if the handler is nil.
func Client(t interface{ Cleanup(func()) }, handler http.Handler) *http.Client {
	if isnil.Value(handler) {
		panic(valueError("Client", nil, "a handler"))
	}
	l := Listen()
	var running sync.WaitGroup // the server, and its connections
	server := &http.Server{Handler: handler, ConnState: func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			running.Add(1)
		case http.StateClosed, http.StateHijacked:
			running.Done()
		}
	}}
	running.Go(func() { _ = server.Serve(l) })
	transport := &http.Transport{DialContext: l.DialContext, MaxIdleConnsPerHost: 1 << 20}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		ended := make(chan struct{})
		go func() {
			running.Wait()
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(5 * time.Second): // a handler that does not return
		}
	})
	return &http.Client{Transport: transport}
}

// A Listener is a net.Listener of pipes in memory, for any protocol. Its methods may be called concurrently.
type Listener struct {
	accepted chan net.Conn
	closed   chan struct{}
	close    func()
}

// Listen returns a listener; a bubble of testing/synctest needs its own.
func Listen() *Listener {
	l := &Listener{accepted: make(chan net.Conn), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

// DialContext connects to the listener, whatever the address, or returns net.ErrClosed.
func (l *Listener) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.accepted <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and DialContext; connections stay.
func (l *Listener) Close() error {
	l.close()
	return nil
}

func (l *Listener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
