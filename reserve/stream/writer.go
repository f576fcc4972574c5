package stream

import (
	"context"
	"io"

	"github.com/nextfree/pace/reserve"
)

// Writer returns a writer that writes to w as fast as the Reserver allows, a permit a byte: at 1 MiB/s a Write of 10
// MiB takes 10 s.
//
// After an error of w, the other permits are given back. If w writes too little without an error, the error is
// [io.ErrShortWrite].
//
// The result is also an [io.ReaderFrom]: if w is an io.ReaderFrom (a TCP connection), io.Copy lets w copy, in steps.
//
// It panics if w, the context or the Reserver is nil.
func Writer(ctx context.Context, w io.Writer, by reserve.Reserver) io.Writer {
	notNil(ctx, "Writer's context")
	notNil(w, "Writer's writer")
	notNil(by, "Writer's limiter")
	return &writer{newPacer(ctx, by), w}
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
		step, n, err := w.paid(len(p), func(step int) (n int, err error) {
			n, err = w.w.Write(p[:step])
			n = max(0, min(n, step)) // whatever a broken w says
			if n < step && err == nil {
				err = io.ErrShortWrite
			}
			return n, err
		})
		written += n
		if err != nil {
			return written, err
		}
		p = p[step:]
	}
	return written, nil
}

func (w *writer) ReadFrom(r io.Reader) (int64, error) { return w.copy(w.w, r) }
