package outbound

import (
	"io"
	"net/http"
	"time"
)

// rewind returns the request for another attempt, and false if its body can't be had
// again. The request itself is not changed.
func rewind(r *http.Request) (*http.Request, bool) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, true
	}
	if r.GetBody == nil {
		return nil, false
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, false
	}
	again := r.WithContext(r.Context())
	again.Body = body
	return again, true
}

// So much of a response is read, for so long at most, that its connection can be used
// again. More would cost more than a new connection.
const (
	maxDrain     = 64 << 10
	maxDrainTime = 500 * time.Millisecond
)

func drain(body io.ReadCloser) {
	slow := time.AfterFunc(maxDrainTime, func() { body.Close() })
	defer slow.Stop()
	io.CopyN(io.Discard, body, maxDrain+1) // what fails here fails for nobody
	body.Close()
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		r.Body.Close()
	}
}
