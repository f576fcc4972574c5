package queue

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/reserve"
)

// Places are a number of places in flight, as a [reserve.Reserver]: a place is out until its reservation's Cancel or
// Settle(0). The Delay of a request that waits is reserve.Forever, which refuses none early.
type Places struct {
	mu      sync.Mutex
	n, out  int
	waiting list.List // of *place, by number
}

// NewPlaces returns n places.
func NewPlaces(n int) *Places { return &Places{n: n} }

// Resize makes them n places. Those that are out stay out.
func (s *Places) Resize(n int) {
	s.mu.Lock()
	s.n = n
	s.give()
	s.mu.Unlock()
}

// Out returns how many are out.
func (s *Places) Out() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out
}

func (s *Places) wait() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out < s.n && s.waiting.Len() == 0 {
		return 0
	}
	return unknown
}

// give gives free places to requests that wait. It must be locked.
func (s *Places) give() {
	for e := s.waiting.Front(); e != nil && s.out < s.n; e = s.waiting.Front() {
		p := s.waiting.Remove(e).(*place)
		s.out++
		p.at = nil
		close(p.ready)
	}
}

type place struct {
	of     *Places
	number uint64 // requests get places in the order of these
	ready  chan struct{}
	at     *list.Element // while it waits
	over   bool
	ended  chan struct{}
}

// ReserveWithin reserves one place, whatever n. With a maxWait of 0 it returns a *[reserve.WaitError] if none is free.
func (s *Places) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error) {
	if err := done.Cause(ctx); err != nil {
		return reserve.Reservation{}, err
	}
	p := &place{of: s}
	if r := RankOf(ctx); r != nil {
		p.number = r.Number
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out < s.n && s.waiting.Len() == 0 {
		s.out++
		return reserve.NewReservation(p), nil
	}
	if maxWait <= 0 {
		return reserve.Reservation{}, &reserve.WaitError{Wait: unknown, MaxWait: maxWait}
	}
	p.ready, p.ended = make(chan struct{}), make(chan struct{})
	e := s.waiting.Back()
	for e != nil && e.Value.(*place).number > p.number {
		e = e.Prev()
	}
	if e == nil {
		p.at = s.waiting.PushFront(p)
	} else {
		p.at = s.waiting.InsertAfter(p, e)
	}
	s.give() // it may have become the first that passes
	return reserve.NewReservation(p), nil
}

func (p *place) Permits() int  { return 1 }
func (p *place) Settle(n int)  { p.end(n) }
func (p *place) Cancel()       { p.end(0) }
func (p *place) At() time.Time { return time.Now() }

func (p *place) Delay() time.Duration {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.at != nil {
		return unknown
	}
	return 0
}

func (p *place) end(n int) {
	s := p.of
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > 0 || p.over {
		return
	}
	p.over = true
	if p.at != nil {
		s.waiting.Remove(p.at)
		p.at = nil
		close(p.ended)
		return
	}
	s.out--
	s.give()
}

func (p *place) Wait(ctx context.Context) error {
	if p.ready == nil {
		return done.Cause(ctx)
	}
	select {
	case <-p.ready:
		return nil
	case <-p.ended:
		return reserve.ErrCancelled
	case <-ctx.Done():
		p.end(0)
		return context.Cause(ctx)
	}
}
