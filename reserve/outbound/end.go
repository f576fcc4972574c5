package outbound

import (
	"context"
	"io"
	"sync"

	"github.com/nextfree/pace/reserve/outbound/internal/bodies"
)

// leave gives places in flight back.
func leave(seats charges) {
	for seat := range seats.all {
		if seat.Held != nil {
			seat.Held.Cancel()
		}
	}
}

// placed returns a response's body that gives the places back when it is closed, fails, was read to its end, or its
// request's context ends: until then the server may still work on it, and net/http holds its connection.
func placed(ctx context.Context, of io.ReadCloser, seats charges) io.ReadCloser {
	b := &placedBody{ReadCloser: of, seats: seats}
	if ctx.Done() != nil {
		b.stop = context.AfterFunc(ctx, b.leave)
	}
	return bodies.Instead(of, b)
}

type placedBody struct {
	io.ReadCloser
	seats charges
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
