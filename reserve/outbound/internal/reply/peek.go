package reply

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/nextfree/pace/reserve/outbound/internal/bodies"
)

const (
	// MaxBody is how many bytes of a body are read at most.
	MaxBody = 64 << 10
	maxPeek = 300 * time.Millisecond
)

// peek returns the begin of a response's body, as far as it comes in time, and puts it back.
func peek(r *http.Response) []byte {
	p := &peeked{body: r.Body, done: make(chan struct{})}
	r.Body = p
	go p.read()
	timer := time.NewTimer(maxPeek)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begin
}

type peeked struct {
	body io.ReadCloser
	done chan struct{} // closed when rest is set
	rest io.Reader

	mu    sync.Mutex
	begin []byte // what was read is not changed any more
}

func (p *peeked) read() {
	defer close(p.done)
	defer func() { // here it would end the program
		if r := recover(); r != nil {
			p.rest = panicking{r}
		}
	}()
	_, err := io.CopyN((*kept)(p), p.body, MaxBody)
	if err == io.EOF {
		err = nil
	}
	p.rest = bodies.Again(p.begin, p.body, err)
}

type kept peeked // the body itself has no Write

func (k *kept) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.begin = append(k.begin, b...)
	return len(b), nil
}

func (p *peeked) Read(b []byte) (int, error) {
	<-p.done
	return p.rest.Read(b)
}

func (p *peeked) Close() error { return p.body.Close() }

// panicking panics again where the caller reads the body.
type panicking struct{ value any }

func (p panicking) Read([]byte) (int, error) { panic(p.value) }
