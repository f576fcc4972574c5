package inbound

import (
	"bytes"
	"io"
	"net/http"
)

// longestBody is how much of a waiting request's body is kept in memory.
const longestBody = 64 << 10

// readEarly reads the body of a request that waits, because net/http looks for clients of HTTP/1
// that have gone only when the body has been read. That is done for a body of known length up to
// longestBody, and not for a client that waits for 100 Continue before it sends one. (net/http
// would itself read such a body before it answers, so a client that is slow to send it is answered
// no later.)
func readEarly(r *http.Request) {
	if r.ProtoMajor != 1 || r.ContentLength < 1 || r.ContentLength > longestBody || r.Header.Get("Expect") != "" {
		return
	}
	body := &earlyBody{source: r.Body, read: make(chan struct{})}
	r.Body = body
	go func() {
		defer close(body.read)
		_, body.err = body.data.ReadFrom(io.LimitReader(body.source, r.ContentLength))
	}()
}

// An earlyBody is a body that is read by a goroutine of its own.
type earlyBody struct {
	source io.ReadCloser
	read   chan struct{} // closed when all has been read, or an error ended it
	data   bytes.Buffer
	err    error // nil if all has been read
}

// Read waits until the body has been read.
func (b *earlyBody) Read(p []byte) (int, error) {
	<-b.read
	n, err := b.data.Read(p)
	if err == io.EOF && b.err != nil {
		err = b.err
	}
	return n, err
}

func (b *earlyBody) Close() error { return b.source.Close() }
