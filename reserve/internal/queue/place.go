package queue

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
)

const never = saturate.Never

// A Place is a request in a queue. Its exported fields are set before Enter. It must not be copied.
type Place struct {
	Permits int      // at least 1: what its order and its accounts count
	Options []Option // at least one; places may share them
	Group   int      // places with the same number are refused in the order of their deadlines
	Rank    *Rank    // of a request that may ask again; nil: it does not
	Data    any      // the order's
	Hint    any      // the maker's
	// Except reports whether an option must not be chosen. May be nil.
	Except func(option int) bool
	// Renew is called before each reservation, and may change the limits' permits; its error ends the place. It must
	// not call the queue. May be nil.
	Renew func() error
	// Memory is used for an option with several limits, if long enough.
	Memory []Part

	// What other places look at, in one cache line.
	rank  Rank
	links [kinds]link

	queue   *Queue
	ctx     context.Context
	begin   int64        // when it entered
	counted [tracked]int // what the order's sums have of it

	// Guarded by the queue's lock.
	latest     int64 // when it must go, or never
	byDeadline bool  // of its context, or of one that waits for it
	state      state
	pass       Pass
	used       bool // own and Memory are taken
	settled    bool
	hold       *hold              // if it is bound or granted
	own        hold               // its first one
	extra      int                // permits that are charged beyond Permits when it goes
	sleepers   int                // in Wait
	changed    chan struct{}      // closed when the state or the hold changes; may be nil
	stop       func()             // ends a call to a limit that may block; may be nil
	at         int64              // when it was granted; before and afterwards, what At returned last
	err        error              // why it is over
	lapse      Node[int64, Place] // in the heap of its group
}

// SetPermits changes the permits of one of the place's limits. Only Renew may call it.
func (p *Place) SetPermits(option, limit, permits int) {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	p.Options[option].Limits[limit].Permits = permits
}

type state uint8

const (
	waiting state = iota
	bound
	granted
	over
)

// A Pass says which places pass a place, because it waits for something that they don't need.
type Pass uint8

// PassGroup holds up the other places of the group.
const (
	NoPass Pass = iota
	PassOne
	PassGroup
)

// Passed reports whether others pass the place.
func (p *Place) Passed() Pass { return p.pass }

// newHold returns an empty hold. The caller holds binding.
func (p *Place) newHold(option int) *hold {
	h := &p.own
	n := len(p.Options[option].Limits)
	memory := p.Memory
	if p.used {
		h, memory = new(hold), nil
	}
	h.place, h.option = p, option
	switch {
	case n <= len(h.one):
		h.parts = h.one[:n]
	case n <= len(memory):
		h.parts = memory[:n]
	default:
		h.parts = make([]Part, n)
	}
	p.used = true
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

// Option returns the option of a bound or granted place, or -1.
func (p *Place) Option() int {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	if p.hold == nil {
		return -1
	}
	return p.hold.option
}

// Held returns a granted place's reservation at a limit of its option.
func (p *Place) Held(limit int) *reserve.Reservation { return p.hold.parts[limit].r }

// Waited returns how long a granted place waited.
func (p *Place) Waited() time.Duration {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	if p.state != granted {
		return 0
	}
	return time.Duration(p.at - p.begin)
}

// At returns when the place was granted, is promised to go, or its forecast.
func (p *Place) At() time.Time {
	q := p.queue
	q.poll()
	q.mu.Lock()
	defer q.mu.Unlock()
	switch p.state {
	case granted, bound:
		return p.hold.time()
	case waiting:
		p.at = add(q.now(), q.forecast(p))
	}
	return q.clock.Time(p.at)
}

// Delay returns how long it is until At; 0: it may go. For a place that waits it is at least 1 ns.
func (p *Place) Delay() time.Duration {
	q := p.queue
	q.poll()
	q.mu.Lock()
	defer q.mu.Unlock()
	switch p.state {
	case granted:
		return p.hold.delay()
	case bound:
		return max(1, p.hold.delay())
	case waiting:
		return max(1, q.forecast(p))
	}
	return 0
}
