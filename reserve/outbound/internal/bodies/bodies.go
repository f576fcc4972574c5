// Package bodies has what transports do with bodies.
package bodies

import (
	"io"
	"net/http"
)

// Close closes the body of a request that is not sent, as an [http.RoundTripper] must.
func Close(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close() // whoever made it hears of its errors
	}
}

// Instead returns a body that takes the place of a response's. That of an upgraded connection can be written to, and
// so can what is returned then.
func Instead(of, body io.ReadCloser) io.ReadCloser {
	if w, ok := of.(io.Writer); ok {
		return struct {
			io.ReadCloser
			io.Writer
		}{body, w}
	}
	return body
}
