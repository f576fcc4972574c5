package inbound

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"
)

const longestBody = 64 << 10

// readEarly reads a waiting request's body, after which net/http notices that a client of HTTP/1 has left. It
// returns nil for a body longer than longestBody or of unknown length, and for a client that waits for 100 Continue.
func readEarly(r *http.Request) *earlyBody {
	if r.ProtoMajor != 1 || r.ContentLength < 1 || r.ContentLength > longestBody || r.Header.Get("Expect") != "" {
		return nil
	}
	body := &earlyBody{source: r.Body, read: make(chan struct{})}
	r.Body = body
	go func() {
		defer close(body.read)
		_, body.err = body.data.ReadFrom(io.LimitReader(body.source, r.ContentLength))
	}()
	return body
}

type earlyBody struct {
	source io.ReadCloser
	read   chan struct{} // closed when all has been read, or an error ended it
	data   bytes.Buffer
	err    error // nil if all has been read
	closed atomic.Bool
}

func (b *earlyBody) Read(p []byte) (int, error) {
	<-b.read
	if b.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.data.Read(p)
	if err == io.EOF && b.err != nil {
		err = b.err
	}
	return n, err
}

func (b *earlyBody) Close() error {
	b.closed.Store(true)
	return b.source.Close()
}
