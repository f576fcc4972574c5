package queue

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
)

type promise struct{ *Place }

func (p promise) Permits() int { return p.Place.Permits }
func (p promise) Begin()       { p.each(true, (*reserve.Reservation).Begin) }
func (p promise) End()         { p.each(true, (*reserve.Reservation).End) }

// each calls f for the place's reservations; or only if it is granted.
func (p *Place) each(ifGranted bool, f func(*reserve.Reservation)) {
	p.queue.mu.Lock()
	h := p.hold
	if ifGranted && p.state != granted {
		h = nil
	}
	p.queue.mu.Unlock()
	if h != nil {
		for i := range h.parts {
			if r := h.parts[i].r; r != nil {
				f(r)
			}
		}
	}
}

// Reservation returns the place as a reservation.
func (p *Place) Reservation() reserve.Reservation { return reserve.NewReservation(promise{p}) }

// PlaceOf returns the place in this queue behind a reservation, or nil.
func (q *Queue) PlaceOf(r *reserve.Reservation) (found *Place) {
	p, ok := (*engine.Reservation)(r).Promise().(promise)
	if !ok || p.queue == q {
		return p.Place
	}
	p.each(false, func(r *reserve.Reservation) {
		if found == nil {
			found = q.PlaceOf(r)
		}
	})
	return found
}

// A placeContext has the caller's values, and does not end with the caller's context: a reservation outlives it.
type placeContext Place

func (c *placeContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (c *placeContext) Done() <-chan struct{}       { return nil }
func (c *placeContext) Err() error                  { return nil }
func (c *placeContext) Value(key any) any {
	if key == (rankKey{}) {
		return &c.rank
	}
	return c.ctx.Value(key)
}

// A Rank is a request's place in an order. A request that asks again goes before requests that first asked after it.
// The zero value is a new request's.
type Rank struct {
	Number  uint64
	Arrived int64
}

// numbers are the same for all queues, so that ranks compare where queues meet.
var numbers atomic.Uint64

// Ranked returns the rank that FIFO.Push gave the place.
func (p *Place) Ranked() Rank { return p.rank }

func (p *Place) join(now int64) {
	p.rank = Rank{numbers.Add(1), now}
	if r := p.Rank; r != nil {
		if r.Number == 0 {
			*r = p.rank
		}
		p.rank = *r
	}
}

type (
	rankKey   struct{}
	stickyKey struct{}
)

// WithRank returns a context whose request has that rank, or gets it.
func WithRank(ctx context.Context, r *Rank) context.Context {
	return context.WithValue(ctx, rankKey{}, r)
}

// RankOf returns a context's rank, or nil.
func RankOf(ctx context.Context) *Rank {
	r, _ := ctx.Value(rankKey{}).(*Rank)
	return r
}

// WithSticky returns a context whose requests prefer the option that served the latest request of the same key.
func WithSticky(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, stickyKey{}, key)
}

// StickyOf returns a context's key, if any.
func StickyOf(ctx context.Context) (key string, ok bool) {
	key, ok = ctx.Value(stickyKey{}).(string)
	return key, ok
}
