package keyed

import (
	"context"
	"slices"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
	"github.com/nextfree/pace/reserve/internal/keyhooks"
)

// inside has the methods for package inbound: see [keyhooks.Limiters].
type inside[K comparable] struct{ *Limiters[K] }

// holder has the methods for a [keyhooks.Hold].
type holder[K comparable] struct{ *Limiters[K] }

// Hold implements [keyhooks.Limiters].
func (k inside[K]) Hold(
	ctx context.Context, key K, n int, maxWait time.Duration, keep bool,
) (h keyhooks.Hold, err error) {
	number, hash := k.place(key)
	s := &k.shards[number]
	asked := k.in(ctx, s, hash, key, func(e *entry[K]) {
		if e.limiter == nil {
			before := e.compact
			now, taken, _ := e.compact.acquire(ctx, e.policy, n)
			switch {
			case taken && keep:
				h.Kept = keyhooks.Kept{Known: true, Outlook: e.compact.outlookAt(e.policy, now)}
				return
			case taken:
				h.Of, h.Shard, h.ID = holder[K](k), number, s.hold(e, before, n)
				return
			}
		}
		if h.Reservation, err = e.reserve(ctx, n, maxWait); err == nil {
			h.Limiter = e.limiter
		}
	})
	if asked != nil {
		err = asked
	}
	return
}

// Always implements [keyhooks.Limiters].
func (k inside[K]) Always(policy *reserve.Policy) { k.always = policy }

// held is a shard's record of a [keyhooks.Hold].
type held[K comparable] struct {
	id      uint64
	key     K
	hash    uint32
	permits int
	before  compact              // what the key was before
	whole   *reserve.Reservation // made when the key was promoted; nil before
	limiter *reserve.Limiter     // of the reservation
}

// hold records that permits of an entry are on hold, and its state before. Such an entry has one hold,
// and stays in the table.
func (s *shard[K]) hold(e *entry[K], before compact, permits int) (id uint64) {
	s.lastHold++
	e.held = true
	s.holds = append(s.holds, held[K]{id: s.lastHold, key: e.key, hash: e.hash, permits: permits, before: before})
	return s.lastHold
}

// share prepares an entry for another request. If permits of it are on hold, it is promoted, and makes a reservation in
// place of the hold. A compact limiter can't take permits back after others were taken.
func (s *shard[K]) share(e *entry[K]) {
	if !e.held {
		return
	}
	e.held = false
	h := &s.holds[slices.IndexFunc(s.holds, func(h held[K]) bool {
		return h.hash == e.hash && h.key == e.key && h.whole == nil
	})]
	e.limiter = h.before.promote(e.policy)
	h.whole, h.limiter = new(reserve.Reservation), e.limiter
	// No error: the same permits were available a moment ago.
	*h.whole, _ = e.limiter.ReserveWithin(context.Background(), h.permits, reserve.Forever)
}

// findHold returns the position of a hold that is not over.
func (s *shard[K]) findHold(id uint64) int {
	return slices.IndexFunc(s.holds, func(h held[K]) bool { return h.id == id })
}

// End implements [keyhooks.Holder].
func (k holder[K]) End(shard uint32, id uint64, used int) {
	s := &k.shards[shard]
	s.mu.Lock()
	i := s.findHold(id)
	h := s.holds[i]
	last := len(s.holds) - 1
	s.holds[i] = s.holds[last]
	s.holds[last] = held[K]{} // for the garbage collector
	s.holds = s.holds[:last]
	if used == keyhooks.All {
		used = h.permits
	}
	if h.whole == nil {
		e := s.find(h.hash, h.key)
		e.held = false
		if used < h.permits {
			e.compact, h.permits = h.before, 0
		}
		if used > h.permits {
			e.compact.charge(e.policy, used-h.permits)
		}
	}
	s.mu.Unlock()
	if h.whole != nil && used != h.permits { // under no lock: it may lock a limiter that was retired
		h.whole.Settle(used)
	}
}

// Outlook implements [keyhooks.Limiters].
func (k inside[K]) Outlook(key K) (o engine.Outlook, err error) {
	asked := k.with(context.Background(), key, func(e *entry[K]) {
		if e.limiter == nil {
			o = e.compact.outlook(e.policy)
		} else {
			o = (*engine.Limiter)(e.limiter).Outlook()
		}
	})
	return o, asked
}

// Outlook implements [keyhooks.Holder].
func (k holder[K]) Outlook(shard uint32, id uint64) engine.Outlook {
	s := &k.shards[shard]
	s.mu.Lock()
	h := s.holds[s.findHold(id)]
	if h.whole == nil {
		defer s.mu.Unlock()
		e := s.find(h.hash, h.key)
		return e.compact.outlook(e.policy)
	}
	s.mu.Unlock() // before another lock: the limiter may have been retired
	return (*engine.Limiter)(h.limiter).Latest()
}
