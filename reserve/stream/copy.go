package stream

import (
	"io"
	"sync"

	"github.com/nextfree/pace/reserve"
)

// copy copies from r, which is no io.WriterTo, to w, in steps. If w is an
// io.ReaderFrom it does the reading, of one step at a time: of an *io.LimitedReader
// the standard library's files and connections know what to make (sendfile, splice).
func (p pacer) copy(w io.Writer, r io.Reader) (written int64, err error) {
	var buffer []byte
	if _, ok := w.(io.ReaderFrom); !ok {
		b := buffers.Get().(*[usual]byte)
		defer buffers.Put(b)
		buffer = b[:]
	}
	source := io.LimitedReader{R: r}
	for {
		var paid reserve.Reservation
		step, err := p.pay(most, &paid)
		if err != nil {
			return written, err
		}
		source.N = int64(step)
		n, err := io.CopyBuffer(w, &source, buffer)
		written += n
		if n < int64(step) {
			paid.Settle(int(n))
		}
		if err != nil || n < int64(step) { // less, without an error: that is the end of r
			return written, err
		}
	}
}

// buffers are kept since a Writer that a Reader copies to gets a copy for each step.
var buffers = sync.Pool{New: func() any { return new([usual]byte) }}
