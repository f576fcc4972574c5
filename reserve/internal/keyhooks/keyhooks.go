// Package keyhooks gives the packages below reserve access to unexported methods of *keyed.Limiters. They hold permits
// of a key that may still be given back, at less than the price of a reservation, and keep keys out.
//
// A *keyed.Limiters embeds a [Door], whose one method is not exported. [Of] opens it.
package keyhooks

import (
	"context"
	"iter"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
)

// Limiters is the inside of a *keyed.Limiters.
type Limiters[K comparable] interface {
	// Hold takes n permits of the key (at least 1), if they may be used within maxWait. The caller has to say later
	// whether it uses them. Errors are those of ReserveWithin.
	//
	// Keep says that the caller uses the permits in any case, if they are available now. That is cheaper,
	// since the hold is over at once. The Outlook is then of the moment at which they were taken.
	Hold(ctx context.Context, key K, n int, maxWait time.Duration, keep bool) (Hold, error)
	// Always sets a policy for all keys, in place of the policy function.
	Always(policy *reserve.Policy)
	// Peek is that of the *keyed.Limiters.
	Peek(key K, n int) (wait time.Duration, err error)
	// Outlook returns what the key's limiter has to give now, or the policy function's error.
	Outlook(key K) (engine.Outlook, error)
	// Guard sets which new keys are remembered, and Own how a new key is stored: own returns an equal key.
	// These three must be called before any key is used.
	Guard(guard Guard[K])
	Own(own func(K) K)
}

// A Limiter is one key's limiter, as For of a *keyed.Limiters returns it.
type Limiter interface {
	// Hold, Peek and Outlook are those of the key.
	Hold(ctx context.Context, n int, maxWait time.Duration, keep bool) (Hold, error)
	// Stop and RefuseBehind are those of [hooks.Hooks], of the key's limiter.
	Stop(t time.Time)
	Peek(n int) (wait time.Duration, err error)
	Outlook() (engine.Outlook, error)
	RefuseBehind(ctx context.Context, ahead iter.Seq[int], n int, maxWait time.Duration) error
}

// A Guard says which new keys are remembered. It may admit no more than so many of one network, so that one network
// does not take the room of all others. Its methods may be called at the same time, and under a lock: they must be
// quick, and must not use the limiters.
type Guard[K comparable] interface {
	// Admits reports whether a new key may be remembered, beside so many others. If not, it is
	// refused with keyed.ErrTooManyKeys.
	Admits(key K, remembered int) bool
	// Count is told of each key that is remembered from now on (by 1) or was dropped (by -1).
	Count(key K, by int)
}

// A Door is embedded in a *keyed.Limiters, which has to be the same for as long as it is used.
type Door[K comparable] struct{ inside Limiters[K] }

// NewDoor returns a door to those limiters.
func NewDoor[K comparable](inside Limiters[K]) Door[K] { return Door[K]{inside} }

func (d *Door[K]) open() Limiters[K] { return d.inside }

// Of returns the inside of limiters, which must not be a nil pointer, or nil if they are no
// *keyed.Limiters[K].
func Of[K comparable](limiters any) Limiters[K] {
	if d, ok := limiters.(interface{ open() Limiters[K] }); ok {
		return d.open()
	}
	return nil
}

// A Hold is n permits of a key for a caller that decides soon whether it uses them: [Hold.Keep], [Hold.Cancel] or
// [Hold.Settle]. A request with several limits needs that. It costs less than a reservation. Where the permits are
// available at once, the key stays compact, as after TryAcquire (some 90 bytes in place of 300).
//
// It must not be copied. One goroutine at a time may use it.
type Hold struct {
	// Reservation is set if the permits are not available at once, or if others hold permits of the key
	// at the same time. Otherwise it is the zero Reservation, and there is no wait.
	Reservation reserve.Reservation
	Limiter     *reserve.Limiter // of the Reservation, or nil

	Of    Holder // nil if there is a Reservation, or the hold is over
	Shard uint32 // of Of,
	ID    uint64 // and which of its holds it is

	Kept Kept // of a hold that was over at once
}

// Kept is the outlook of a hold that was over at once.
type Kept struct {
	Known   bool
	Outlook engine.Outlook
}

// A Holder is a *keyed.Limiters of any type of key.
type Holder interface {
	// End ends a hold of which so many permits are used, or [All].
	End(shard uint32, id uint64, used int)
	Outlook(shard uint32, id uint64) engine.Outlook
}

// All says that all permits of a hold are used.
const All = -1

// Keep says that the permits are used, or will be. Of a Reservation it says nothing.
func (h *Hold) Keep() { h.end(All) }

// Cancel gives the permits back. After the first Keep, Cancel or Settle it does nothing, but of a
// Reservation it is [reserve.Reservation.Cancel].
func (h *Hold) Cancel() {
	h.end(0)
	h.Reservation.Cancel()
}

// Settle says how many permits were used (at least 0): fewer, and the others come back; more, and the
// key's next request pays for them. After the first Keep, Cancel or Settle it does nothing, but of a
// Reservation it is [reserve.Reservation.Settle].
func (h *Hold) Settle(used int) {
	h.end(used)
	h.Reservation.Settle(used)
}

func (h *Hold) end(used int) {
	if of := h.Of; of != nil {
		h.Of = nil
		of.End(h.Shard, h.ID, used)
	}
}

// Outlook returns what the key's limiter has to give now, or after the latest request that it got. It
// returns false of the zero Hold, and may after Keep or Cancel.
func (h *Hold) Outlook() (engine.Outlook, bool) {
	switch {
	case h.Kept.Known:
		return h.Kept.Outlook, true
	case h.Of != nil:
		return h.Of.Outlook(h.Shard, h.ID), true
	case h.Limiter != nil:
		return (*engine.Limiter)(h.Limiter).Latest(), true
	}
	return engine.Outlook{}, false
}
