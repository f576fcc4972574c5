package shared

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/saturate"
)

// A stock holds permits that were bought ahead of their callers: see [WithAhead].
type stock struct {
	most  int // requests that a call buys ahead
	flush func()

	mu      sync.Mutex
	bought  []*request // by their time
	refunds []*request // of what nobody wanted; they go with the next call
	wanted  int        // requests since the last call; a request that waits for it counts twice
	size    int        // permits of the largest of late
	begin   int64      // of the last call
	trip    int64      // how long it took
	timer   *time.Timer
}

const (
	// bought: as many as came in the time of so many calls. That is more than callers can use; with fewer, two limits
	// that are asked one after the other slow each other's callers, and both buy less and less.
	aheadCalls = 8
	// kept: at most so many calls before their time, and after it.
	keptCalls = 2
)

// fill answers a request for permits from the stock.
func (l *Limiter) fill(r *request) bool {
	s, now := &l.stock, l.now()
	if s.most == 0 || r.permits < 1 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted, s.size = s.wanted+1, max(s.size, r.permits)
	s.giveBack(now)
	latest := min(r.deadline, saturate.Add(now, r.maxWait))
	i := slices.IndexFunc(s.bought, func(b *request) bool { return b.permits >= r.permits && b.ready <= latest })
	if i < 0 {
		return false
	}
	b := s.bought[i]
	s.bought = slices.Delete(s.bought, i, i+1)
	r.answer, r.ready = b.answer, b.ready
	if surplus := b.permits - r.permits; surplus > 0 {
		back := refund{slot: b.slot, permits: surplus}
		s.refunds = append(s.refunds, changes(change{refund: &back}))
		r.slot = back.rest()
	}
	l.counters.requests.Add(1)
	return true
}

// order returns what goes with a call: permits to give back, and requests to buy ahead.
func (s *stock) order(now int64) (refunds, ahead []*request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	refunds, s.refunds = s.refunds, nil
	came := float64(s.wanted) * float64(aheadCalls*s.trip) / float64(max(now-s.begin, s.trip, 1))
	for range int(min(float64(s.most), came)) - len(s.bought) {
		ahead = append(ahead, buys(s.size, keptCalls*s.trip, never))
	}
	s.begin, s.wanted, s.size = now, 0, s.size-s.size/8
	return refunds, ahead
}

// put keeps what was bought in a call that took so long.
func (s *stock) put(ahead []*request, trip int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trip = trip
	for _, b := range ahead {
		if b.granted {
			s.keep(b)
		}
	}
}

// putBack keeps a promise that was cancelled, if it could have been bought now.
func (s *stock) putBack(p *promise, now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.bought) >= s.most || p.ready > saturate.Add(now, keptCalls*s.trip) {
		return false
	}
	granted := answer{granted: true, slot: p.slot}
	s.keep(&request{purchase: purchase{permits: p.slot.permits, answer: granted, ready: p.ready}})
	return true
}

func (s *stock) keep(b *request) {
	i, _ := slices.BinarySearchFunc(s.bought, b, func(a, b *request) int { return cmp.Compare(a.ready, b.ready) })
	s.bought = slices.Insert(s.bought, i, b)
	s.watch()
}

func (s *stock) watch() {
	if s.timer == nil && len(s.bought) > 0 {
		s.timer = time.AfterFunc(time.Duration((2*keptCalls+1)*s.trip), s.flush)
	}
}

// giveBack gives back what nobody has wanted for long enough; at never, all.
func (s *stock) giveBack(now int64) {
	s.bought = slices.DeleteFunc(s.bought, func(b *request) bool {
		expired := saturate.Add(b.ready, keptCalls*s.trip) < now
		if expired {
			undo, _ := b.undo()
			s.refunds = append(s.refunds, undo)
		}
		return expired
	})
}

func (s *stock) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bought)+len(s.refunds) == 0
}

// change gives back what was bought ahead: it is for the state of before.
func (l *Limiter) change(ctx context.Context, c change) error {
	l.stock.mu.Lock()
	l.stock.giveBack(never)
	l.stock.mu.Unlock()
	return l.do(ctx, changes(c))
}

// flush gives back what nobody has wanted, if no call has come that takes it along.
func (l *Limiter) flush() {
	s := &l.stock
	s.mu.Lock()
	s.giveBack(l.now())
	s.timer = nil
	s.watch()
	unsent := len(s.refunds) > 0
	s.mu.Unlock()
	if unsent && l.do(context.Background(), looks()) != nil { // the permits are lost
		s.mu.Lock()
		s.refunds = nil
		s.mu.Unlock()
	}
}
