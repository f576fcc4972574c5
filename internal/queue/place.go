package queue

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/limit"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/order"
	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
)

const never = saturate.Never

// A Place is a request in a queue. Its exported fields are set before Enter. It must not be copied.
type Place struct {
	Permits int      // at least 1: what its class and tenant are charged
	Options []Option // at least one; places may share them
	Class   int
	Tenant  string  // of the class; "": it has none
	Weight  float64 // the tenant's; 0: 1
	Rank    *Rank   // of a request that may ask again; nil: it does not
	Key     string  // prefers the option that served it last: see [Sticky]; "": none
	// Except, if not nil, reports whether an option must not be chosen.
	Except func(option int) bool
	// Renew, if not nil, is called before each reservation, and may change the limits' permits; its error ends the
	// place. It must not call the queue.
	Renew func() error

	entry order.Entry[Place] // the queue's lock guards it

	queue *Queue
	ctx   context.Context
	begin int64 // when it entered

	// Guarded by the queue's lock:
	lapse      order.Node[int64, Place] // key: when it must go
	state      state
	byDeadline bool // latest is a deadline: of its context, or of one that waits for it
	used       bool // own is taken
	settled    bool
	early      bool          // it was refused before what others leave was given back
	fails      uint8         // of waits that were too late
	sleepers   int32         // in Wait
	latest     int64         // when it must go, or never
	until      int64         // latest, as it was bound; binding guards it
	hold       *hold         // if it is bound or granted
	own        hold          // its first one
	resized    int           // the permits of Settle while its state was binding; 0: none
	changed    chan struct{} // closed when the state or the hold changes; may be nil
	asks       *asks         // a call to limits that may block; may be nil
	at         int64         // when it was granted; before and afterwards, what At returned last
	err        error         // why it is over
}

// An asks is a call to limits that may block.
type asks struct {
	stop func()
	over chan struct{} // closed when it is over, and what a place that has left got is given back
}

// SetPermits changes the permits of one of the place's limits; only Renew may call it.
func (p *Place) SetPermits(option, limit, permits int) {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	p.Options[option].Limits[limit].Permits = permits
}

func (p *Place) asked() (all [order.Tracked]int64) {
	limits := p.Options[0].Limits
	for i := range min(len(limits), order.Tracked) {
		all[i] = order.Counted(limits[i].permits(p))
	}
	return all
}

type state uint8

const (
	waiting state = iota
	binding       // a limit is asked, without the queue's lock: its permits stay as they are
	bound
	granted
	over
)

// newHold returns an empty hold. The caller holds binding.
func (p *Place) newHold(option int) *hold {
	h := &p.own
	if p.used {
		h = new(hold)
	}
	p.used = true
	h.place, h.option = p, option
	if n := len(p.Options[option].Limits); n <= len(h.few) {
		h.parts = h.few[:n]
	} else {
		h.parts = make([]part, n)
	}
	return h
}

func (p *Place) remaining(now int64) time.Duration {
	if p.latest == never {
		return reserve.Forever
	}
	return max(0, time.Duration(saturate.Add(p.latest, -now)))
}

func (p *Place) signal() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

func (p *Place) closed(option int) bool {
	q := p.queue
	return option < len(q.options) && q.options[option].closed.Load() ||
		p.Except != nil && len(p.Options) > 1 && p.Except(option)
}

func (p *Place) Option() int {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	if p.hold == nil {
		return -1
	}
	return p.hold.option
}

func (p *Place) Held(limit int) *reserve.Reservation { return p.hold.parts[limit].r }

func (p *Place) Waited() time.Duration {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	if p.state != granted {
		return 0
	}
	return time.Duration(p.at - p.begin)
}

func (p *Place) At() time.Time {
	h, at, _ := p.due()
	if h != nil {
		return h.awaited().At()
	}
	return p.queue.clock.Time(at)
}

// Delay returns how long it is until At; 0: it may go. For a place that waits it is at least 1 ns, for one that was
// refused reserve.Forever.
func (p *Place) Delay() time.Duration {
	h, _, d := p.due()
	if h != nil {
		return h.present()
	}
	return d
}

// due returns when a place may go, and how long that is, or the hold of a granted one.
func (p *Place) due() (h *hold, at int64, d time.Duration) {
	q := p.queue
	q.poll()
	now := q.lock()
	defer q.mu.Unlock()
	switch p.state {
	case granted:
		return p.hold, 0, 0
	case bound:
		p.at = add(now, p.hold.delay())
	case waiting:
		p.at = add(now, q.forecast(p))
	case over:
		if p.err != reserve.ErrCancelled { // 0 would be leave to go
			d = unknown
		}
		return nil, p.at, d
	} // while it is binding, what it holds would count twice
	return nil, p.at, max(1, time.Duration(saturate.Add(p.at, -now)))
}

type promise struct{ *Place }

func (p promise) Permits() int { return p.Place.Permits }
func (p promise) Begin()       { p.each(limit.Begin) }
func (p promise) End()         { p.each(limit.End) }

func (p *Place) each(f func(*reserve.Reservation)) {
	p.queue.mu.Lock()
	h := p.hold
	if p.state != granted {
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

func (p *Place) Reservation() reserve.Reservation { return reserve.NewReservation(promise{p}) }

// PlaceOf returns the place in this queue behind a reservation, or nil.
func (q *Queue) PlaceOf(r *reserve.Reservation) (found *Place) {
	p, ok := (*engine.Reservation)(r).Promise().(promise)
	if !ok || p.queue == q {
		return p.Place
	}
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	for i := 0; p.hold != nil && i < len(p.hold.parts) && found == nil; i++ {
		if r := p.hold.parts[i].r; r != nil {
			found = q.PlaceOf(r)
		}
	}
	return found
}

// A placeContext has the caller's values, and does not end: a reservation outlives the caller's context.
type placeContext Place

func (c *placeContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (c *placeContext) Done() <-chan struct{}       { return nil }
func (c *placeContext) Err() error                  { return nil }
func (c *placeContext) Value(key any) any {
	if key == (rankKey{}) {
		return &c.entry.Rank
	}
	return c.ctx.Value(key)
}
