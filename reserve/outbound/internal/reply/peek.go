package reply

import (
	"io"
	"net/http"
	"time"

	"github.com/nextfree/pace/reserve/outbound/internal/bodies"
)

const (
	// MaxBody is how many bytes of a body are read at most.
	MaxBody = 64 << 10
	// maxPeek is how long they may take.
	maxPeek = 300 * time.Millisecond
)

// peek returns the begin of a response's body, and puts it back; nil if it comes too late.
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

type peeked struct {
	body  io.ReadCloser
	done  chan struct{} // closed when begin is set
	begin []byte
	rest  io.Reader
}

func (p *peeked) read() {
	defer close(p.done)
	defer func() { // here it would end the program
		if r := recover(); r != nil {
			p.begin, p.rest = nil, panicking{r}
		}
	}()
	begin, err := io.ReadAll(io.LimitReader(p.body, MaxBody))
	p.begin, p.rest = begin, bodies.Again(begin, p.body, err)
}

func (p *peeked) Read(b []byte) (int, error) {
	<-p.done
	return p.rest.Read(b)
}

func (p *peeked) Close() error { return p.body.Close() }

// panicking panics again where the caller reads the body.
type panicking struct{ value any }

func (p panicking) Read([]byte) (int, error) { panic(p.value) }
