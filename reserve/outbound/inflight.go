package outbound

import (
	"container/list"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/nextfree/pace/reserve/outbound/internal/bodies"
)

// inFlight bounds how many requests are out at a time, for each key. A key without requests takes no
// memory. Calls get their places in the order of their numbers, so that a retry goes before later calls.
type inFlight struct {
	n   int
	key func(*http.Request) string

	mu   sync.Mutex
	keys map[string]*places
}

// places are the places of one key.
type places struct {
	taken   int
	waiting list.List // of *place, by number
}

// A place is a call's place in flight, whether it has it or not. All methods but wait accept nil, for a
// transport without a bound.
type place struct {
	of     *inFlight
	key    string
	number uint64 // of the call

	held  bool          // guarded by of.mu, as is ready
	ready chan struct{} // closed when the call gets the place
}

// place returns the place of a request, which it does not have yet.
func (f *inFlight) place(r *http.Request) *place { return &place{of: f, key: f.key(r)} }

// places returns the places of a key.
func (f *inFlight) places(key string) *places {
	p := f.keys[key]
	if p == nil {
		if f.keys == nil {
			f.keys = map[string]*places{}
		}
		p = new(places)
		f.keys[key] = p
	}
	return p
}

// full reports whether a call would have to wait for its place.
func (p *place) full() bool {
	if p == nil {
		return false
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	of := p.of.keys[p.key]
	return of != nil && (of.taken >= p.of.n || of.waiting.Len() > 0)
}

// take takes the place if it is free, and reports whether it was.
func (p *place) take() bool {
	if p == nil {
		return true
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	return p.takeLocked()
}

func (p *place) takeLocked() bool {
	of := p.of.places(p.key)
	if of.taken >= p.of.n || of.waiting.Len() > 0 {
		return false
	}
	of.taken++
	p.held = true
	return true
}

// wait waits for the place, until late if that is not nil.
func (p *place) wait(ctx context.Context, late <-chan time.Time) error {
	of, at := p.queue()
	if at == nil {
		return nil
	}
	var err error
	select {
	case <-p.ready:
		return nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-late:
		err = errLate
	}
	p.of.mu.Lock()
	of.waiting.Remove(at) // it does nothing if the call has got its place meanwhile
	p.of.mu.Unlock()
	p.leave()
	return err
}

var errLate = errors.New("outbound: no place in time")

// queue takes the place, or else waits for it behind the calls that are older; at is nil if it is taken.
func (p *place) queue() (of *places, at *list.Element) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.takeLocked() {
		return nil, nil
	}
	of, p.ready = p.of.places(p.key), make(chan struct{})
	for at = of.waiting.Back(); at != nil && at.Value.(*place).number > p.number; at = at.Prev() {
	}
	if at == nil {
		return of, of.waiting.PushFront(p)
	}
	return of, of.waiting.InsertAfter(p, at)
}

// leave gives the place to the next call, if it is held.
func (p *place) leave() {
	if p == nil {
		return
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if !p.held {
		return
	}
	p.held = false
	of := p.of.keys[p.key]
	if first := of.waiting.Front(); first != nil {
		next := of.waiting.Remove(first).(*place)
		next.held = true
		close(next.ready)
		return
	}
	if of.taken--; of.taken == 0 {
		delete(p.of.keys, p.key)
	}
}

// placed returns a response's body that gives the place back when it is closed, and not before: until
// then the server may still be at work on it.
func placed(of io.ReadCloser, p *place) io.ReadCloser { return bodies.Instead(of, &placedBody{of, p}) }

type placedBody struct {
	io.ReadCloser
	place *place
}

func (b *placedBody) Close() error {
	defer b.place.leave()
	return b.ReadCloser.Close()
}
