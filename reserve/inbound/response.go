package inbound

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// A Response is what a handler has answered, for [ChargeAfter].
type Response struct {
	Status int   // 200 if the handler has set none
	Bytes  int64 // of the body, before the server compresses or chunks it; none of a hijacked connection
}

type responseWriter struct {
	http.ResponseWriter
	status int // 0: none yet
	bytes  int64
	body   *earlyBody // nil if it was not read
}

func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *responseWriter) response() Response {
	r := Response{Status: w.status, Bytes: w.bytes}
	if r.Status == 0 {
		r.Status = http.StatusOK
	}
	return r
}

func (w *responseWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *responseWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	return n, w.wrote(int64(n), err)
}

// ReadFrom implements io.ReaderFrom: the system still sends files.
func (w *responseWriter) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(w.ResponseWriter, r)
	return n, w.wrote(n, err)
}

func (w *responseWriter) wrote(n int64, err error) error {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.bytes += n
	return err
}

func (w *responseWriter) Flush() { _ = w.FlushError() }

func (w *responseWriter) FlushError() error {
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack implements http.Hijacker. As in net/http, the reader begins with the rest of the body, once it has arrived.
func (w *responseWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.body != nil {
		<-w.body.read // the goroutine uses the connection's buffer
	}
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil || w.body == nil {
		return conn, rw, err
	}
	buffered := w.body.data.Len() + rw.Reader.Buffered()
	reader := bufio.NewReaderSize(io.MultiReader(&w.body.data, rw.Reader), max(4096, buffered))
	_, _ = reader.Peek(buffered) // so that Buffered tells of it, which some protocols ask
	return conn, bufio.NewReadWriter(reader, rw.Writer), nil
}
