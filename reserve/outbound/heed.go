package outbound

import (
	"io"
	"net/http"
	"time"
)

// A ruling is what follows from a response for its request.
type ruling struct {
	again  bool      // it may be sent again
	resume time.Time // not before; zero: the key has been stopped, and it need not wait by itself
}

// heed does what the server says in a response: it stops the key, changes its rate,
// and settles the cost.
func (t *Transport) heed(v *visit, r *http.Response, attempt int) (next ruling) {
	now := t.now()
	h := readHints(r.Header, now)
	refused := isRefusal(r, h)
	var wanted, pause time.Duration
	switch {
	case refused:
		wanted = h.delay(attempt)
		pause = min(wanted, t.maxRetryAfter)
		next.again = attempt <= t.retries && wanted <= t.maxRetryAfter
	case h.stop > 0 && (r.StatusCode < 300 || r.StatusCode >= 400): // not before a redirect is followed
		pause = min(h.stop, t.maxRetryAfter)
	}
	resume := now.Add(pause)
	switch {
	case pause == 0:
	case refused && t.pauseRefused:
		next.resume = resume
		resume = now
	default:
		v.stop(resume)
	}
	var from, to float64
	if v.lane != nil {
		if cached(r.Header) {
			v.lane.fail(v.ticket) // it says nothing, even if all is well
		} else {
			from, to = v.lane.heard(v.ticket, now, v.sent, h, refused, resume)
		}
	}
	if t.after != nil {
		v.promise.Settle(t.after(r))
	}
	if refused {
		t.hooks.throttled(r, wanted)
	}
	t.hooks.rateChanged(v.request, from, to)
	return next
}

// isRefusal reports whether a response says that there were too many requests: 429; 503
// with Retry-After; and 403 with Retry-After or with nothing left, which is how GitHub says it.
func isRefusal(r *http.Response, h hints) bool {
	switch r.StatusCode {
	case http.StatusTooManyRequests:
		return !cached(r.Header)
	case http.StatusServiceUnavailable:
		return h.told
	case http.StatusForbidden:
		return h.told || h.stop > 0 || h.slow
	default:
		return false
	}
}

const (
	// Without a word from the server, one is stopped for so long after a first
	// refusal, and twice as long after each further one of the same request.
	firstBackoff = time.Second
	lastBackoff  = time.Minute
)

// delay returns how long after a refusal a request may be made again.
func (h *hints) delay(attempt int) time.Duration {
	switch {
	case h.told && h.retryAfter > 0:
		return h.retryAfter
	case !h.told && h.stop > 0:
		return h.stop
	default:
		return min(firstBackoff<<min(attempt-1, 6), lastBackoff)
	}
}

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
	maxDrainTime = time.Second
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
