// Package bodies has what transports do with bodies.
package bodies

import (
	"bytes"
	"io"
	"net/http"
)

// Close closes the body of a request that is not sent, as an [http.RoundTripper] must.
func Close(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

// Instead returns a body to replace a response's. It has Write if that has, as an upgraded connection's body does.
func Instead(of, body io.ReadCloser) io.ReadCloser {
	if w, ok := of.(io.Writer); ok {
		return struct {
			io.ReadCloser
			io.Writer
		}{body, w}
	}
	return body
}

// Again reads what was read of a body, and then its rest; or the error that reading it has brought, if that is not nil.
func Again(read []byte, rest io.Reader, err error) io.Reader {
	if err != nil {
		rest = failing{err}
	}
	return io.MultiReader(bytes.NewReader(read), rest)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
