package queue

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve"
)

// Places are a number of places in flight, as a [reserve.Reserver]: a place is out until its reservation's Cancel or
// Settle(0). The Delay of a request that waits is reserve.Forever, which refuses none early.
type Places struct {
	limit.Mute

	mu       sync.Mutex
	n, out   int
	waiting  []*place // by number
	watchers map[weak.Pointer[Queue]]struct{}
}

func NewPlaces(n int) *Places { return &Places{n: n} }

// Resize makes them n places. Places that are out stay out.
func (s *Places) Resize(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n = n
	s.give()
}

func (s *Places) Out() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out
}

func (s *Places) free() bool { return s.out < s.n && len(s.waiting) == 0 }

// wait returns the wait for a place; the queue looks again when one is free.
func (s *Places) wait(q *Queue) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free() {
		return 0
	}
	if s.watchers == nil {
		s.watchers = map[weak.Pointer[Queue]]struct{}{}
	}
	s.watchers[weak.Make(q)] = struct{}{}
	return unknown
}

// give gives free places to requests that wait, and tells others. It must be locked.
func (s *Places) give() {
	for len(s.waiting) > 0 && s.out < s.n {
		p := s.waiting[0]
		s.waiting = slices.Delete(s.waiting, 0, 1)
		s.out++
		p.waits = false
		close(p.ready)
	}
	if s.free() {
		for q := range s.watchers {
			if q := q.Value(); q != nil {
				q.version.Add(1)
				q.call()
			}
		}
		clear(s.watchers)
	}
}

type place struct {
	of     *Places
	number uint64 // requests get places in the order of these
	waits  bool
	over   bool
	ready  chan struct{} // closed when it waits no longer; nil: it never did
}

// ReserveWithin reserves one place, whatever n. With a maxWait of 0 it returns a *[reserve.WaitError] if none is free.
func (s *Places) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error) {
	if err := done.Cause(ctx); err != nil {
		return reserve.Reservation{}, err
	}
	p := &place{of: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free() {
		s.out++
		return reserve.NewReservation(p), nil
	}
	if maxWait <= 0 {
		return reserve.Reservation{}, &reserve.WaitError{Wait: unknown, MaxWait: maxWait}
	}
	if r := RankOf(ctx); r != nil {
		p.number = r.Number
	}
	p.waits, p.ready = true, make(chan struct{})
	i, _ := slices.BinarySearchFunc(s.waiting, p.number+1, func(p *place, number uint64) int {
		return cmp.Compare(p.number, number)
	})
	s.waiting = slices.Insert(s.waiting, i, p)
	s.give() // it may have become the first that passes
	return reserve.NewReservation(p), nil
}

func (p *place) Permits() int  { return 1 }
func (p *place) Cancel()       { p.Settle(0) }
func (p *place) At() time.Time { return time.Now() }

func (p *place) Delay() time.Duration {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.waits {
		return unknown
	}
	return 0
}

func (p *place) Settle(n int) {
	s := p.of
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > 0 || p.over {
		return
	}
	p.over = true
	if p.waits {
		s.waiting = slices.DeleteFunc(s.waiting, func(other *place) bool { return other == p })
		p.waits = false
		close(p.ready)
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
		p.of.mu.Lock()
		defer p.of.mu.Unlock()
		if p.over {
			return reserve.ErrCancelled
		}
		return nil
	case <-ctx.Done():
		p.Settle(0)
		return context.Cause(ctx)
	}
}
