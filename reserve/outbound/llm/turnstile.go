package llm

import (
	"context"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"
)

// A turnstile lets one call through at a time, as long as something is not known that its response will tell.
type turnstile struct {
	mu   sync.Mutex
	busy chan struct{} // closed when the call that went through is done; nil: the next one may go
}

// patience is for how long the others wait for one call: a server may never answer it, and a long answer may take
// minutes. Then the next one goes as well.
const patience = 10 * time.Second

// enter waits until known, or until it is the call's turn to find out: then it must call done, once or more often.
// It returns the context's cause if that ends first.
func (s *turnstile) enter(ctx context.Context, clock clockwork.Clock, known func() bool) (done func(), err error) {
	for !known() {
		s.mu.Lock()
		busy := s.busy
		if busy == nil {
			mine := make(chan struct{})
			s.busy = mine
			s.mu.Unlock()
			return func() { s.leave(mine) }, nil
		}
		s.mu.Unlock()
		if clock == nil {
			clock = clockwork.NewRealClock()
		}
		late := clock.NewTimer(patience)
		select {
		case <-busy:
		case <-late.Chan():
			s.leave(busy)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if late.Stop(); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// leave lets the next call through, unless that has happened already.
func (s *turnstile) leave(mine chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy == mine {
		close(mine)
		s.busy = nil
	}
}
