package stream

import (
	"io"
	"sync"

	"github.com/nextfree/pace/reserve"
)

// copy copies from r, which is not an io.WriterTo, in steps. If w is an io.ReaderFrom, it reads a step at a time from
// an *io.LimitedReader: then the standard library's files and connections use sendfile or splice.
func (p pacer) copy(w io.Writer, r io.Reader) (written int64, err error) {
	var buffer []byte
	if _, ok := w.(io.ReaderFrom); !ok {
		b := buffers.Get().(*[usual]byte)
		defer buffers.Put(b)
		buffer = b[:]
	}
	source := io.LimitedReader{R: r}
	for {
		step, n, err := p.copyStep(w, &source, buffer)
		written += n
		if err != nil || n < step { // less without an error is the end of r
			return written, err
		}
	}
}

// copyStep copies a step's n bytes, and gives back the other permits, all if r or w panics.
func (p pacer) copyStep(w io.Writer, source *io.LimitedReader, buffer []byte) (step, n int64, err error) {
	var paid reserve.Reservation
	size, err := p.pay(most, &paid)
	if err != nil {
		return 0, 0, err
	}
	step = int64(size)
	defer func() {
		if n < step {
			paid.Settle(int(n))
		}
	}()
	source.N = step
	n, err = io.CopyBuffer(w, source, buffer)
	return step, n, err
}

var buffers = sync.Pool{New: func() any { return new([usual]byte) }}
