package outbound

import (
	"context"
	"errors"
	"io"
	"sync"

	lim "github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve/outbound/internal/bodies"
)

// end ends an attempt, also after a panic. It settles an attempt without a response at its cost. A second end does
// nothing.
func (c *call) end() {
	phase := c.phase
	c.phase = idle
	defer leave(c.seats)
	defer c.endProbes()
	defer c.closeBodies()
	switch phase {
	case granted:
		c.place.Cancel()
		c.gates = nil
		for i := range c.seats {
			c.seats[i].Held = nil
		}
	case out:
		for i := range c.charges {
			lim.End(c.charges[i].Held) // of all, before a user's Lost, which may panic
		}
		for i := range c.charges {
			c.lose(&c.charges[i])
		}
	}
}

func (c *call) endProbes() {
	for _, held := range c.gates {
		held.Cancel()
	}
	c.gates = nil
}

func (c *call) closeBodies() {
	if c.unsent {
		c.unsent = false
		bodies.Close(c.outgoing)
	}
	if c.response != nil {
		c.response.Body.Close()
		c.response = nil
	}
}

func (c *call) lose(a *charge) {
	if a.rate != nil && !errors.Is(c.request.Context().Err(), context.Canceled) { // that of a caller who left says nothing
		a.rate.lost()
	}
	if a.limit.lost != nil {
		if n, known := a.limit.lost(c.subject); known {
			c.settled(a, n)
			return
		}
	}
	a.keep()
}

// leave gives places in flight back.
func leave(seats []charge) {
	for i := range seats {
		if seats[i].Held != nil {
			seats[i].Held.Cancel()
		}
	}
}

// placed returns a response's body that gives the places back when it is closed, fails, was read to its end, or its
// request's context ends: until then the server may still work on it, and net/http holds its connection.
func placed(ctx context.Context, of io.ReadCloser, seats []charge) io.ReadCloser {
	b := &placedBody{ReadCloser: of, seats: seats}
	if ctx.Done() != nil {
		b.stop = context.AfterFunc(ctx, b.leave)
	}
	return bodies.Instead(of, b)
}

type placedBody struct {
	io.ReadCloser
	seats []charge
	once  sync.Once
	stop  func() bool
}

func (b *placedBody) Read(p []byte) (n int, err error) {
	if n, err = b.ReadCloser.Read(p); err != nil {
		b.over()
	}
	return n, err
}

func (b *placedBody) Close() error {
	defer b.over()
	return b.ReadCloser.Close()
}

func (b *placedBody) over() {
	if b.stop != nil {
		b.stop()
	}
	b.leave()
}

func (b *placedBody) leave() { b.once.Do(func() { leave(b.seats) }) }

func (c *call) release() {
	for _, s := range c.states {
		s.users.Add(-1)
	}
	c.states = nil
}
