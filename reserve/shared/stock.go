package shared

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/saturate"
)

type stock struct {
	most  int // lots
	flush func()

	mu      sync.Mutex
	lots    []*request // granted, by their time; callers use a part each
	changes int        // of the limiter: lots of before one are not for callers after it
	begin   int64      // of the last call
	granted int        // requests since then
	permits int        // theirs
	largest float64    // of them and of some before
	trip    int64      // how long a call takes
	timer   *time.Timer
}

const (
	// bought: as many permits as callers got in the time of so many calls. With fewer, two limits that are asked one
	// after the other slow each other's callers, and both buy less and less.
	boughtCalls = 8
	// kept: at most so many calls before their time, and after it.
	keptCalls = 2
)

// fill answers a request for permits from the stock.
func (l *Limiter) fill(r *request) bool {
	s, now := &l.stock, l.now()
	if s.most == 0 || r.permits < 1 || r.look {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	latest := min(r.deadline, saturate.Add(now, r.maxWait))
	i := slices.IndexFunc(s.lots, func(of *request) bool {
		return of.permits >= r.permits && of.ready <= latest && !s.stale(of, now)
	})
	if i < 0 {
		return false
	}
	of := s.lots[i]
	r.answer, r.ready = answer{granted: true, slot: of.slot}, of.ready
	of.slot = refund{slot: of.slot, permits: r.permits}.rest()
	if of.permits -= r.permits; of.permits == 0 {
		s.lots = slices.Delete(s.lots, i, i+1)
	}
	s.count(r.permits)
	l.counters.requests.Add(1)
	return true
}

func (s *stock) count(permits int) {
	s.granted, s.permits, s.largest = s.granted+1, s.permits+permits, max(s.largest, float64(permits))
}

type errand struct {
	refunds, buys []*request
	changes       int // of the limiter, when it began
}

func (l *Limiter) errand(list []*request, begin int64) (e errand) {
	s, c := &l.stock, l.terms.Load().curve
	if s.most == 0 {
		return e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e.refunds, e.changes = s.giveBack(begin), s.changes
	wanted := slices.ContainsFunc(list, func(r *request) bool { return r.permits > 0 })
	if !wanted || slices.ContainsFunc(list, (*request).alone) {
		return e
	}
	if s.granted > 0 && c.Interval > 0 {
		lots, size := s.wants(begin, c.Refill)
		for range min(lots, maxList-len(list)-len(e.refunds)) {
			e.buys = append(e.buys, buys(size, keptCalls*s.trip, never))
		}
	}
	s.begin, s.granted, s.permits, s.largest = begin, 0, 0, s.largest*7/8
	return e
}

// wants returns how many lots a call buys, and their permits: as many as the largest request of late, unless it is
// rare. The rate is in permits a nanosecond.
func (s *stock) wants(now int64, rate float64) (lots, size int) {
	mean := float64(s.permits) / float64(s.granted)
	each := math.Ceil(min(s.largest, max(2*mean, rate*float64(keptCalls*s.trip))))
	permits := float64(s.permits) * float64(boughtCalls*s.trip) / float64(max(now-s.begin, s.trip, 1))
	for _, of := range s.lots {
		permits -= float64(of.permits)
	}
	return int(min(float64(s.most-len(s.lots)), permits/each)), int(each)
}

func (s *stock) answered(list []*request, e errand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range list {
		if r.granted {
			s.count(r.permits)
		}
	}
	for _, b := range e.buys {
		if b.granted {
			s.lots = append(s.lots, b)
		}
	}
	slices.SortStableFunc(s.lots, func(a, b *request) int { return cmp.Compare(a.ready, b.ready) })
	if e.changes != s.changes {
		s.renew()
	}
	s.watch()
}

func (s *stock) took(trip int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trip = cmp.Or(s.trip, trip)
	s.trip += (trip - s.trip) / 8
}

// stale: nobody may use the lot any more; it goes back with the next call.
func (s *stock) stale(of *request, now int64) bool {
	return saturate.Add(of.ready, keptCalls*s.trip) < now
}

func (s *stock) giveBack(now int64) (refunds []*request) {
	for len(s.lots) > 0 && s.stale(s.lots[0], now) {
		refund, _ := s.lots[0].undo()
		s.lots, refunds = s.lots[1:], append(refunds, refund)
	}
	return refunds
}

// watch looks again soon: what is left goes back within six calls' time.
func (s *stock) watch() {
	if s.timer == nil && len(s.lots) > 0 {
		s.timer = time.AfterFunc(time.Duration(keptCalls*s.trip)+1, s.flush)
	}
}

func (s *stock) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lots) == 0
}

// renew makes all lots stale. The lock is held.
func (s *stock) renew() {
	s.changes++
	for _, of := range s.lots {
		of.ready = math.MinInt64
	}
}

func (l *Limiter) change(ctx context.Context, c change) error {
	err := l.do(ctx, changes(c))
	if err == nil && c.terms != nil {
		l.terms.Store(c.terms)
	}
	l.stock.mu.Lock()
	defer l.stock.mu.Unlock()
	l.stock.renew()
	return err
}

// flush gives back what nobody has wanted, if no call takes it along; if that fails, it is lost.
func (l *Limiter) flush() {
	s := &l.stock
	s.mu.Lock()
	left := len(s.lots) > 0 && s.stale(s.lots[0], l.now())
	s.mu.Unlock()
	defer func() {
		_ = recover() // nobody else could
		s.mu.Lock()
		defer s.mu.Unlock()
		if left {
			s.giveBack(l.now())
		}
		s.timer = nil
		s.watch()
	}()
	if left {
		left = l.do(context.Background(), looks()) != nil
	}
}
