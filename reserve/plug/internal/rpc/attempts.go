package rpc

import (
	"net/http"
	"sync"

	"github.com/nextfree/pace/reserve/outbound"
)

// Attempts are those of one call or stream: one, or one for each message. The zero value but for its Transport is ready
// to use. Take is for one goroutine at a time. The others may be called at the same time.
type Attempts struct {
	Transport *outbound.Transport

	mu       sync.Mutex
	last     *outbound.Attempt
	request  *http.Request // of the last
	accepted bool          // the last one was
	ended    bool
}

// Take waits for the next attempt. The one before was accepted, since the server has not ended
// the stream.
func (t *Attempts) Take(r *http.Request) error {
	t.Accept(func() http.Header { return nil })
	t.mu.Lock()
	if t.last != nil {
		t.last.Close()
		t.last = nil
	}
	t.mu.Unlock()
	next, err := t.Transport.Begin(r)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended { // meanwhile
		next.Close()
		return nil
	}
	t.last, t.request, t.accepted = next, r, false
	return nil
}

// Accept says that the server has begun to answer, with that header.
func (t *Attempts) Accept(header func() http.Header) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last != nil && !t.accepted && !t.ended {
		t.accepted = true
		a := Answer{Header: header()}
		t.last.Answered(a.response(t.request))
	}
}

// End says how the call ended. Only the first End counts.
func (t *Attempts) End(a Answer) {
	t.end(func() {
		if a.Refused || !t.accepted {
			t.last.Answered(a.response(t.request))
		}
	})
}

func (t *Attempts) Abandon() { t.end(func() {}) }

func (t *Attempts) end(say func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	t.ended = true
	if t.last != nil {
		defer t.last.Close() // a hook may panic
		say()
	}
}

func (t *Attempts) Ended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}
