package outbound

import (
	"io"
	"net/http"
	"sync"
)

// An Attempt is one call that [Transport.Begin] has let go. Its methods may be called at the same
// time.
type Attempt struct {
	call    *call
	release func()

	answers sync.Mutex // one after the other

	mu       sync.Mutex
	answered bool
}

// Begin waits until a call may go, as [Transport.RoundTrip] does, and leaves it to the caller to
// make the call: for calls that are requests, but are not made by an [http.RoundTripper], as those
// of gRPC. The request is only asked for keys and costs, its body is not touched. Every Attempt has
// to be closed. [WithRetries] does not apply.
func (t *Transport) Begin(r *http.Request) (*Attempt, error) {
	c, err := t.newCall(r)
	if err != nil {
		return nil, c.refused(err)
	}
	release, err := t.inFlight.acquire(c.ctx, r)
	if err != nil {
		return nil, c.refused(err)
	}
	a := &Attempt{call: c, release: release}
	going := false
	defer func() {
		if !going { // refused, or a hook has panicked
			a.Close()
		}
	}()
	if err = c.acquire(); err != nil {
		return nil, c.refused(err)
	}
	waited := c.sent.Sub(c.begin)
	t.log.waited(c.sent, r, waited)
	t.hooks.waited(r, waited)
	going = true
	return a, nil
}

// Answered tells the transport the server's answer, from which it learns as RoundTrip would.
// The body is read to its end and closed. A server may say more later, as when it refuses in the
// middle of a stream: then Answered is called again.
func (a *Attempt) Answered(r *http.Response) {
	a.mu.Lock()
	a.answered = true
	a.mu.Unlock()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	a.answers.Lock()
	defer a.answers.Unlock()
	a.call.t.observe(a.call, r, a.call.t.retries+1)
	io.Copy(io.Discard, r.Body)
	r.Body.Close()
}

// Close says that the call is over. If it was not answered, it may have reached the server, and has
// cost its permits. A second Close does nothing.
func (a *Attempt) Close() {
	a.mu.Lock()
	answered := a.answered
	a.answered = true
	a.mu.Unlock()
	if !answered {
		a.call.lost()
	}
	a.release()
}
