package reply

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

const (
	// MaxBody is how many bytes of a body are read.
	MaxBody = 64 << 10
	// maxPeek is how long they may take to come.
	maxPeek = 300 * time.Millisecond
)

// peek returns the begin of a response's body, and puts it back. If it does not come in time, there
// is none.
func peek(r *http.Response) []byte {
	p := &peeked{body: r.Body, done: make(chan struct{})}
	r.Body = p
	go p.read()
	timer := time.NewTimer(maxPeek)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.begin
	case <-timer.C:
		return nil
	}
}

// peeked is a body whose begin has been read, or is being read.
type peeked struct {
	body  io.ReadCloser
	done  chan struct{} // closed when the begin has been read
	begin []byte
	rest  io.Reader
}

func (p *peeked) read() {
	defer close(p.done)
	defer func() { // in a goroutine of its own it would end the program
		if r := recover(); r != nil {
			p.begin, p.rest = nil, panicking{r}
		}
	}()
	begin, err := io.ReadAll(io.LimitReader(p.body, MaxBody))
	p.begin, p.rest = begin, io.MultiReader(bytes.NewReader(begin), p.body)
	if err != nil {
		p.rest = io.MultiReader(bytes.NewReader(begin), failing{err})
	}
}

func (p *peeked) Read(b []byte) (int, error) {
	<-p.done
	return p.rest.Read(b)
}

func (p *peeked) Close() error { return p.body.Close() }

// panicking is the rest of a body whose Read has panicked: so does this, where the caller reads it.
type panicking struct{ value any }

func (p panicking) Read([]byte) (int, error) { panic(p.value) }

// failing is the rest of a body that could not be read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
