package stream

import (
	"io"
	"sync"
)

// copy copies from r, which is not an io.WriterTo, in steps. If w is an io.ReaderFrom, it reads a step at a time from
// an *io.LimitedReader: the standard library's files and connections then use sendfile or splice.
func (p pacer) copy(w io.Writer, r io.Reader) (written int64, err error) {
	var buffer []byte
	if _, ok := w.(io.ReaderFrom); !ok {
		b := buffers.Get().(*[usual]byte)
		defer buffers.Put(b)
		buffer = b[:]
	}
	source := io.LimitedReader{R: r}
	for {
		step, n, err := p.paid(most, func(step int) (int, error) {
			source.N = int64(step)
			n, err := io.CopyBuffer(w, &source, buffer)
			return int(n), err
		})
		written += int64(n)
		if err != nil || n < step { // less without an error is the end of r
			return written, err
		}
	}
}

var buffers = sync.Pool{New: func() any { return new([usual]byte) }}
