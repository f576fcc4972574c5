package keyed

import (
	"context"
	"slices"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/door"
)

// A Hold is n permits of a key for a caller that may still give them back, and soon says which
// it is: [Hold.Keep] or [Hold.Cancel]. It is what a request with several limits needs, and costs
// less than a reservation: permits that are to be had at once leave the key as small as
// [Limiters.TryAcquire] does (some 90 bytes in place of 300).
//
// [Limiters.Hold] makes it. It must not be copied; one goroutine at a time may use it.
type Hold struct {
	// Reservation is what was reserved, if the permits are not to be had at once, or others hold
	// permits of the key at the same time. Otherwise it is the zero Reservation, and nothing need
	// be waited for.
	Reservation reserve.Reservation

	limiter *reserve.Limiter // of the Reservation, or nil
	of      holder           // nil if there is a Reservation, or the hold is over
	shard   uint32
	id      uint64
}

// A holder is a *Limiters of any type of key.
type holder interface {
	end(shard uint32, id uint64, cancel bool)
	outlook(shard uint32, id uint64) door.Outlook
}

// Keep says that the permits are used, or will be. Of a Reservation it says nothing.
func (h *Hold) Keep() { h.end(false) }

// Cancel gives the permits back. After the first Keep or Cancel it does nothing, but of a
// Reservation it is [reserve.Reservation.Cancel].
func (h *Hold) Cancel() {
	h.end(true)
	h.Reservation.Cancel()
}

func (h *Hold) end(cancel bool) {
	if of := h.of; of != nil {
		h.of = nil
		of.end(h.shard, h.id, cancel)
	}
}

// Outlook is for package inbound: what the key's limiter has to give now, or after the latest request
// that it got. It returns false of the zero Hold, and may after Keep or Cancel.
func (h *Hold) Outlook() (door.Outlook, bool) {
	switch {
	case h.of != nil:
		return h.of.outlook(h.shard, h.id), true
	case h.limiter != nil:
		return engine.Latest(h.limiter), true
	}
	return door.Outlook{}, false
}

// Hold takes n permits of the key (at least 1), if they may be used within maxWait, for a caller
// that has to say later whether it uses them. Errors are those of [Limiters.ReserveWithin].
func (k *Limiters[K]) Hold(ctx context.Context, key K, n int, maxWait time.Duration) (h Hold, err error) {
	number, hash := k.place(key)
	s := &k.shards[number]
	asked := k.in(ctx, s, hash, key, func(e *entry[K]) {
		if e.limiter == nil {
			before := e.small
			if taken, _ := e.small.acquire(ctx, e.policy, n); taken {
				h.of, h.shard, h.id = k, number, s.hold(e, before, n)
				return
			}
		}
		if h.Reservation, err = e.reserve(ctx, n, maxWait); err == nil {
			h.limiter = e.limiter
		}
	})
	if asked != nil {
		err = asked
	}
	return
}

// held is what a shard knows of a Hold.
type held[K comparable] struct {
	id      uint64
	key     K
	hash    uint32
	permits int
	before  small                // what the key was before
	whole   *reserve.Reservation // nil while the key is small
	limiter *reserve.Limiter     // and whose that is
}

// hold notes that permits of an entry, which was like before, are on hold. An entry that is held
// has one Hold, and stays in the table.
func (s *shard[K]) hold(e *entry[K], before small, permits int) (id uint64) {
	s.lastHold++
	e.held = true
	s.holds = append(s.holds, held[K]{id: s.lastHold, key: e.key, hash: e.hash, permits: permits, before: before})
	return s.lastHold
}

// share lets others use an entry that may be held. If so it becomes a whole limiter that has made a
// reservation in place of the hold, because a small one can take nothing back once others have
// taken from it.
func (s *shard[K]) share(e *entry[K]) {
	if !e.held {
		return
	}
	e.held = false
	h := &s.holds[slices.IndexFunc(s.holds, func(h held[K]) bool { return h.hash == e.hash && h.key == e.key && h.whole == nil })]
	e.limiter = h.before.grown(e.policy)
	h.whole, h.limiter = new(reserve.Reservation), e.limiter
	// No error: it was to be had at once a moment ago.
	*h.whole, _ = e.limiter.ReserveWithin(context.Background(), h.permits, reserve.Forever)
}

// findHold returns the position of a hold that is not over.
func (s *shard[K]) findHold(id uint64) int {
	return slices.IndexFunc(s.holds, func(h held[K]) bool { return h.id == id })
}

func (k *Limiters[K]) end(shard uint32, id uint64, cancel bool) {
	s := &k.shards[shard]
	s.mu.Lock()
	i := s.findHold(id)
	h := s.holds[i]
	last := len(s.holds) - 1
	s.holds[i] = s.holds[last]
	s.holds[last] = held[K]{} // for the garbage collector
	s.holds = s.holds[:last]
	if h.whole == nil {
		e := s.find(h.hash, h.key)
		e.held = false
		if cancel {
			e.small = h.before
		}
	}
	s.mu.Unlock()
	if h.whole != nil && cancel { // under no lock: it may lock a limiter that was retired
		h.whole.Cancel()
	}
}

func (k *Limiters[K]) outlook(shard uint32, id uint64) door.Outlook {
	s := &k.shards[shard]
	s.mu.Lock()
	h := s.holds[s.findHold(id)]
	if h.whole == nil {
		defer s.mu.Unlock()
		e := s.find(h.hash, h.key)
		return e.small.outlook(e.policy)
	}
	s.mu.Unlock() // before another lock: the limiter may have been retired
	return engine.Latest(h.limiter)
}
