// Package memory serves HTTP in memory, over pipes and without sockets, so that it also works in
// simulated time: in a bubble of testing/synctest.
package memory

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
)

// Server serves a handler in memory, and returns how to reach it: a client's base transport,
// whatever the address, and how to stop it. HTTP/2 is spoken over TLS. HTTP/1.1 is not, even if the
// address says https: openai-go closes a stream before its end, so each call has a connection of
// its own, and in a test the handshakes would take half of the time.
func Server(h http.Handler, http2 bool) (base *http.Transport, stop func()) {
	l := &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}, EnableHTTP2: http2}
	base = &http.Transport{MaxIdleConnsPerHost: 1000, DialContext: l.dial}
	if http2 {
		s.StartTLS()
		roots := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
		base.TLSClientConfig = &tls.Config{RootCAs: roots, ServerName: "example.com"} // as the certificate says
		base.ForceAttemptHTTP2 = true
	} else {
		s.Start()
		base.DialTLSContext = l.dial
	}
	return base, func() {
		base.CloseIdleConnections()
		s.Close()
	}
}

// A listener accepts the connections that its dial makes.
type listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return address{} }

type address struct{}

func (address) Network() string { return "memory" }
func (address) String() string  { return "memory:0" }
