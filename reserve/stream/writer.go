package stream

import (
	"context"
	"io"

	"github.com/nextfree/pace/reserve"
)

// Writer returns a writer that writes to w as fast as the Reserver allows, one permit a byte. Write splits its
// bytes into steps, and waits for the permits of each step before it writes it: see the package's
// documentation.
//
// An error of w is returned unchanged, with the number of bytes that were written. The permits of the other bytes are
// given back. If w writes less than it should without an error, the error is [io.ErrShortWrite]. Write returns the
// number of bytes written so far and the cause if the context is done, or a *[reserve.WaitError] if its deadline is
// before the permits' time.
//
// At 1 MiB/s a Write of 10 MiB takes 10 s. The result is also an [io.ReaderFrom]: if w is one (a TCP
// connection, for example), io.Copy lets w copy, step by step.
//
// It panics if w, the context or the Reserver is nil.
func Writer(ctx context.Context, w io.Writer, by reserve.Reserver) io.Writer {
	notNil(ctx, "Writer's context")
	notNil(w, "Writer's writer")
	notNil(by, "Writer's limiter")
	return &writer{pacer{ctx, by}, w}
}

type writer struct {
	pacer
	w io.Writer
}

func (w *writer) Write(p []byte) (written int, err error) {
	if len(p) == 0 {
		return w.w.Write(p)
	}
	for len(p) > 0 {
		step, n, err := w.writeStep(p)
		written += n
		if err != nil {
			return written, err
		}
		p = p[step:]
	}
	return written, nil
}

// writeStep waits for a step's permits and writes n bytes. It gives back the permits of the other bytes: of all
// bytes if w panics.
func (w *writer) writeStep(p []byte) (step, n int, err error) {
	var paid reserve.Reservation
	if step, err = w.pay(len(p), &paid); err != nil {
		return step, 0, err
	}
	defer func() {
		if n < step {
			paid.Settle(n)
		}
	}()
	n, err = w.w.Write(p[:step])
	n = max(0, min(n, step)) // whatever a broken w says
	if n < step && err == nil {
		err = io.ErrShortWrite
	}
	return step, n, err
}

// ReadFrom implements io.ReaderFrom.
func (w *writer) ReadFrom(r io.Reader) (int64, error) { return w.copy(w.w, r) }
