package postgres_test

import (
	"bytes"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A proxy is a network between clients and the server. A trap, once set, catches what a client sends when that has a
// word in it.
type proxy struct {
	to       string
	listener net.Listener

	mu    sync.Mutex
	word  string
	trap  func(c *conversation, sent []byte)
	conns []net.Conn
	all   sync.WaitGroup
}

// A conversation is a client's with the server. Its trap runs in the place of sending, and may send, cut, or wait.
type conversation struct {
	client, server net.Conn
	deaf           chan struct{} // closed: answers do not reach the client
	answered       chan struct{} // has one thing when an answer did not
}

func (c *conversation) cut() {
	c.client.Close()
	c.server.Close()
}

// sendUnanswered sends, waits for the server's answer, and cuts the connection in its place.
func (c *conversation) sendUnanswered(sent []byte) {
	close(c.deaf)
	_, _ = c.server.Write(sent)
	<-c.answered
	c.cut()
}

func newProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{to: to, listener: l}
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

func (p *proxy) addr() string { return p.listener.Addr().String() }

// on sets a trap for one message.
func (p *proxy) on(word string, trap func(c *conversation, sent []byte)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.word, p.trap = word, trap
}

// caught returns the trap if it catches that, once.
func (p *proxy) caught(sent []byte) func(*conversation, []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trap == nil || !bytes.Contains(sent, []byte(p.word)) {
		return nil
	}
	trap := p.trap
	p.trap = nil
	return trap
}

func (p *proxy) accept() {
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
		c := &conversation{client: client, server: server, deaf: make(chan struct{}), answered: make(chan struct{}, 1)}
		p.all.Go(func() { p.ask(c) })
		p.all.Go(func() { answer(c) })
	}
}

func (p *proxy) ask(c *conversation) {
	defer c.cut()
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

func answer(c *conversation) {
	defer c.cut()
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
