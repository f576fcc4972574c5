package stream

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/nextfree/pace/reserve"
)

// Reader returns a reader that reads from r as fast as the Reserver allows, a permit
// for each byte. Each Read waits for the permits of at most one step, then reads once, and
// gives back the permits of what it did not get: see the package's documentation.
//
// Errors and short reads of r come back unchanged. When the context is done Read returns its
// cause, and when its deadline comes before the permits a *[reserve.WaitError]; nothing has been read then.
//
// At 1 MiB/s a copy of 10 MiB takes 10 s. It is an [io.WriterTo] as well, so that io.Copy
// lets an r that is one write out of its own memory; that is paced in the same way.
//
// It panics if r, the context or the Reserver is nil.
func Reader(ctx context.Context, r io.Reader, by reserve.Reserver) io.Reader {
	notNil(ctx, "Reader's context")
	notNil(r, "Reader's reader")
	notNil(by, "Reader's limiter")
	return &reader{pacer: pacer{ctx, by}, r: r}
}

type reader struct {
	pacer
	r     io.Reader
	guess atomic.Int64 // how much r seems to give at a time, see step.go; 0: not known
}

func (r *reader) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	var paid reserve.Reservation
	size := len(p)
	if guess := int(r.guess.Load()); guess > 0 {
		size = min(size, guess)
	}
	step, err := r.pay(size, &paid)
	if err != nil {
		return 0, err
	}
	defer func() { // also if r panics: then nothing was read
		if n != step {
			paid.Settle(n)
		}
	}()
	n, err = r.r.Read(p[:step])
	r.guess.Store(int64(guess(step, n)))
	return n, err
}

// WriteTo implements io.WriterTo.
func (r *reader) WriteTo(w io.Writer) (int64, error) {
	if from, ok := r.r.(io.WriterTo); ok {
		return from.WriteTo(&writer{r.pacer, w})
	}
	return r.copy(w, r.r)
}
