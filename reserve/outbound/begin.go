package outbound

import (
	"io"
	"net/http"
	"sync"
)

// An Attempt is one call that [Transport.Begin] has admitted. Its methods may be called at the same time.
type Attempt struct {
	call *call

	answers sync.Mutex // held while an answer, or its lack, is applied

	mu       sync.Mutex
	answered bool

	close sync.Once
}

// Begin waits until a call may go, as [Transport.RoundTrip] does, for calls that the caller makes without an
// [http.RoundTripper], such as gRPC's. The request tells keys and costs; its body is not touched. Close every Attempt.
// [WithRetries] does not apply.
func (t *Transport) Begin(r *http.Request) (*Attempt, error) {
	c := t.newCall(r)
	c.attempt.unsent = false
	defer func() {
		if c.attempt.phase != out { // refused, or a hook has panicked
			defer c.release()
			c.attempt.end()
		}
	}()
	if err := c.prepare(); err != nil {
		return nil, c.refuse(err)
	}
	if err := c.admit(); err != nil {
		return nil, c.refuse(err)
	}
	c.attempt.goes()
	return &Attempt{call: c}, nil
}

// Answered gives the transport the server's answer, from which it learns as RoundTrip would. It reads and closes the
// body. Call it again if the server says more later, such as a refusal in the middle of a stream.
func (a *Attempt) Answered(r *http.Response) {
	a.comesBack()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	a.answers.Lock()
	defer a.answers.Unlock()
	c := a.call
	defer c.release()
	defer c.attempt.endProbes() // a hook may panic
	defer func() {
		r.Body.Close()
		if c.attempt.phase == out { // a function of the caller's has panicked before the end of the call was told
			c.attempt.end()
		}
	}()
	c.attempt.response = r
	c.obey()
	io.Copy(io.Discard, r.Body)
}

func (a *Attempt) comesBack() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answered {
		return false
	}
	a.answered = true
	a.call.attempt.count(-1)
	a.call.release()
	return true
}

// Close ends the call. Without an answer it has cost its permits. A second Close does nothing.
func (a *Attempt) Close() {
	if !a.comesBack() { // a hook may call Close within Answered
		a.close.Do(func() { leave(a.call.attempt.way.seats) })
		return
	}
	a.answers.Lock()
	defer a.answers.Unlock()
	a.close.Do(a.call.attempt.end)
}
