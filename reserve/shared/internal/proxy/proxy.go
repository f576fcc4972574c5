// Package proxy is a network between a client and a server that breaks at chosen moments, for tests.
package proxy

import (
	"bytes"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A Proxy is a network between clients and the server. A trap catches a message by a word in it.
type Proxy struct {
	to       string
	listener net.Listener

	mu    sync.Mutex
	word  string
	trap  func(c *Conversation, sent []byte)
	conns []net.Conn
	all   sync.WaitGroup
}

// A Conversation is a client's with the server. A trap runs instead of sending, and may send, cut, or wait.
type Conversation struct {
	client, server net.Conn
	deaf           chan struct{} // closed: answers do not reach the client
	answered       chan struct{} // has one thing when an answer did not
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
	close(c.deaf)
	_, _ = c.server.Write(sent)
	<-c.answered
}

// New starts a proxy to an address. The test ends it.
func New(t testing.TB, to string) *Proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &Proxy{to: to, listener: l}
	p.all.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			c.Close()
		}
		p.mu.Unlock()
		p.all.Wait()
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

func (p *Proxy) caught(sent []byte) func(*Conversation, []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trap == nil || !bytes.Contains(sent, []byte(p.word)) {
		return nil
	}
	trap := p.trap
	p.trap = nil
	return trap
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.to)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		c := &Conversation{client: client, server: server, deaf: make(chan struct{}), answered: make(chan struct{}, 1)}
		p.all.Go(func() { p.ask(c) })
		p.all.Go(func() { answer(c) })
	}
}

func (p *Proxy) ask(c *Conversation) {
	defer c.Cut()
	b := make([]byte, 1<<16)
	for {
		n, err := c.client.Read(b)
		if err != nil {
			return
		}
		if trap := p.caught(b[:n]); trap != nil {
			trap(c, bytes.Clone(b[:n]))
		} else if _, err := c.server.Write(b[:n]); err != nil {
			return
		}
	}
}

func answer(c *Conversation) {
	defer c.Cut()
	b := make([]byte, 1<<16)
	for {
		n, err := c.server.Read(b)
		if err != nil {
			return
		}
		select {
		case <-c.deaf:
			select {
			case c.answered <- struct{}{}:
			default:
			}
		default:
			if _, err := c.client.Write(b[:n]); err != nil {
				return
			}
		}
	}
}
