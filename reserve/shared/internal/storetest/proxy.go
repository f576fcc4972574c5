package storetest

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// A Proxy is a network between clients and a server that breaks at chosen moments.
type Proxy struct {
	listener net.Listener

	mu   sync.Mutex
	word string
	trap func(c *Conversation, sent []byte)
}

// A Conversation is a client's with the server. A trap runs instead of sending, and may send, cut, or wait.
type Conversation struct {
	client, server net.Conn
	deaf           atomic.Bool   // answers do not reach the client
	answered       chan struct{} // has one thing when an answer did not
}

// NewProxy starts a proxy to an address. The test ends it.
func NewProxy(t testing.TB, to string) *Proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &Proxy{listener: l}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				client.Close()
				continue
			}
			c := &Conversation{client: client, server: server, answered: make(chan struct{}, 1)}
			context.AfterFunc(t.Context(), c.Cut)
			all.Go(func() { c.pump(client, func(sent []byte) { p.send(c, sent) }) })
			all.Go(func() { c.pump(server, c.answer) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return p
}

// Addr is the address for clients.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// On sets a trap for the next message of a client that has a word in it.
func (p *Proxy) On(word string, trap func(c *Conversation, sent []byte)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.word, p.trap = word, trap
}

func (p *Proxy) send(c *Conversation, sent []byte) {
	p.mu.Lock()
	trap := p.trap
	if trap != nil && bytes.Contains(sent, []byte(p.word)) {
		p.trap = nil
	} else {
		trap = func(c *Conversation, sent []byte) { _, _ = c.server.Write(sent) }
	}
	p.mu.Unlock()
	trap(c, sent)
}

func (c *Conversation) answer(said []byte) {
	if !c.deaf.Load() {
		_, _ = c.client.Write(said)
		return
	}
	select {
	case c.answered <- struct{}{}:
	default:
	}
}

// Cut ends the connection.
func (c *Conversation) Cut() {
	c.client.Close()
	c.server.Close()
}

// SendUnanswered sends, and cuts the connection instead of the answer.
func (c *Conversation) SendUnanswered(sent []byte) {
	c.Send(sent)
	c.Cut()
}

// Send sends, waits for the answer, and keeps it from the client.
func (c *Conversation) Send(sent []byte) {
	c.deaf.Store(true)
	_, _ = c.server.Write(sent)
	<-c.answered
}

func (c *Conversation) pump(from net.Conn, to func([]byte)) {
	defer c.Cut()
	b := make([]byte, 1<<16)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		to(b[:n])
	}
}
