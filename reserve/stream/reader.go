package stream

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/nextfree/pace/reserve"
)

// Reader returns a reader that reads from r as fast as the Reserver allows, a permit a byte: at 1 MiB/s a copy of 10
// MiB takes 10 s. Each Read reads once, for at most one step.
//
// The result is also an [io.WriterTo]: if r is an io.WriterTo, io.Copy lets r write from its own memory, paced as well.
//
// It panics if r, the context or the Reserver is nil.
func Reader(ctx context.Context, r io.Reader, by reserve.Reserver) io.Reader {
	notNil(ctx, "Reader's context")
	notNil(r, "Reader's reader")
	notNil(by, "Reader's limiter")
	return &reader{pacer: newPacer(ctx, by), r: r}
}

type reader struct {
	pacer
	r     io.Reader
	guess atomic.Int64 // see the function guess; 0: unknown
}

func (r *reader) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	size := len(p)
	if guess := int(r.guess.Load()); guess > 0 {
		size = min(size, guess)
	}
	_, n, err = r.paid(size, func(step int) (int, error) {
		n, err := r.r.Read(p[:step])
		r.guess.Store(int64(guess(step, n)))
		return n, err
	})
	return n, err
}

func (r *reader) WriteTo(w io.Writer) (int64, error) {
	if from, ok := r.r.(io.WriterTo); ok {
		return from.WriteTo(&writer{r.pacer, w})
	}
	return r.copy(w, r.r)
}
