package outbound

import (
	"io"
	"net/http"
	"sync"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/queue"
	"github.com/nextfree/pace/reserve/outbound/internal/bodies"
)

// An inFlight bounds the requests that are out, for each key. A key without requests takes no memory.
type inFlight struct {
	name string
	n    int
	key  func(*http.Request) string
	cost func(*http.Request) int // less than 1: it does not hold for the request

	mu   sync.Mutex
	keys map[string]*places
}

type places struct {
	*queue.Places
	calls int // that have places, or wait
}

// A seat is a call's place in flight, or its wish for one.
type seat struct {
	of    *inFlight
	key   string
	limit *limit // whose limiter is at; nil: of's
	at    *places
	held  *reserve.Reservation // nil: not granted
}

// enter returns the places of a key for a call, which must leave.
func (f *inFlight) enter(key string) *places {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.keys[key]
	if p == nil {
		if f.keys == nil {
			f.keys = map[string]*places{}
		}
		p = &places{Places: queue.NewPlaces(f.n)}
		f.keys[key] = p
	}
	p.calls++
	return p
}

func (s *seat) places() *queue.Places {
	if s.at == nil {
		s.at = s.of.enter(s.key)
	}
	return s.at.Places
}

func crowded(seats []seat) bool {
	for i := range seats {
		if s := &seats[i]; s.of != nil && s.at != nil && s.at.Out() >= s.of.n {
			return true
		}
	}
	return false
}

func leave(seats []seat) {
	for i := range seats {
		seats[i].leave()
	}
}

func (s *seat) leave() {
	if s.at == nil {
		return
	}
	if s.held != nil {
		s.held.Cancel()
		s.held = nil
	}
	if s.of == nil {
		return
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.at.calls--; s.at.calls == 0 {
		delete(s.of.keys, s.key)
	}
	s.at = nil
}

// moved says that a copy of the seat is the call's.
func (s *seat) moved() {
	if s.of != nil {
		s.at = nil
	}
}

// placed returns a response's body whose Close gives the places back: until then the server may still work on it.
func placed(of io.ReadCloser, seats []seat) io.ReadCloser {
	return bodies.Instead(of, &placedBody{ReadCloser: of, end: sync.OnceFunc(func() { leave(seats) })})
}

type placedBody struct {
	io.ReadCloser
	end func()
}

func (b *placedBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
