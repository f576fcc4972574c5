package queue

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
)

// never is the last time that there is.
const never = saturate.Never

// A Place is a request in a queue. Its maker sets the exported fields before Enter. It must not be copied then.
type Place struct {
	Permits int      // at least 1: what its order and its accounts count
	Options []Option // at least one; places may share them
	Group   int      // places with the same number are refused in the order of their deadlines
	Rank    *Rank    // of a request that may ask again; nil: it does not
	Data    any      // the order's
	Hint    any      // the maker's
	// Except reports whether an option must not be chosen; nil: any may be.
	Except func(option int) bool
	// Renew, if it is not nil, is called before something is reserved for the place, which is the first then. It may change
	// the permits of the place's limits, and its error ends the place. It must not call the queue.
	Renew func() error
	// Memory is for the reservations at an option's limits. If it is shorter they are allocated.
	Memory []reserve.Reservation

	queue   *Queue
	ctx     context.Context
	begin   int64 // when it entered
	within  int64 // the end of its longest wait, or never
	rank    Rank
	counted [len(Sums{})]int // what the order's sums have of it
	links   [kinds]link

	// Guarded by the queue's lock.
	deadline int64 // of its context, or of a context that waits for it; or never
	state    state
	pass     Pass
	hold     *hold // if it is bound or granted
	own      hold  // its first one
	first    reserve.Reservation
	used     bool // own, first and Memory are taken
	extra    int  // permits that are charged beyond Permits when it goes
	settled  bool
	sleepers int                // in Wait
	changed  chan struct{}      // closed when the state or the hold changes; nil: no caller waits for that
	stop     func()             // ends the call to a limit that may block in its name; nil: there was none
	told     time.Time          // what At returned last
	went     int64              // when it was granted
	err      error              // why it is over
	lapse    Node[int64, Place] // in the heap of its group
}

type state uint8

const (
	waiting state = iota
	bound
	granted
	over
)

// A Pass says whether others pass a place in the order, because it waits for something that they don't need.
type Pass uint8

// The first of an order is not a place that others pass, and with PassGroup none of its group.
const (
	NoPass Pass = iota
	PassOne
	PassGroup
)

// Passed reports whether others pass the place.
func (p *Place) Passed() Pass { return p.pass }

// newHold returns an empty hold of the place at an option. Only the holder of the queue's binding calls it.
func (p *Place) newHold(option int) *hold {
	h := &p.own
	n := len(p.Options[option].Limits)
	if p.used {
		h = new(hold)
	}
	h.place, h.option, h.last = p, option, 0
	h.parts = h.few[:]
	if n > len(h.parts) {
		h.parts = make([]part, n)
	}
	h.parts = h.parts[:n]
	if !p.used {
		for i := range h.parts {
			switch {
			case i < len(p.Memory):
				h.parts[i].room = &p.Memory[i]
			case i == 0:
				h.parts[i].room = &p.first
			}
		}
	}
	p.used = true
	return h
}

// latest returns when it must go at the latest.
func (p *Place) latest() int64 { return min(p.within, p.deadline) }

// remaining returns how long the place may still wait.
func (p *Place) remaining(now int64) time.Duration {
	if p.latest() == never {
		return reserve.Forever
	}
	return max(0, time.Duration(saturate.Add(p.latest(), -now)))
}

// signal wakes callers that wait for a change of the place. The queue must be locked.
func (p *Place) signal() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// Option returns which option the place was granted at, or is bound to; -1: none.
func (p *Place) Option() int {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	if p.hold == nil {
		return -1
	}
	return p.hold.option
}

// Held returns the reservation at a limit of the option that the place was granted at.
func (p *Place) Held(limit int) *reserve.Reservation { return p.hold.parts[limit].r }

// Waited returns how long the place waited until it was granted.
func (p *Place) Waited() time.Duration {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	if p.state != granted {
		return 0
	}
	return time.Duration(p.went - p.begin)
}

// At returns when the place was granted, or is promised to go; or, while it waits, its forecast.
func (p *Place) At() time.Time {
	p.queue.poll()
	q := p.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	switch p.state {
	case granted, bound:
		p.told = p.hold.time()
	case waiting:
		p.told = q.clock.Time(add(q.now(), q.forecast(p)))
	}
	return p.told
}

// Delay returns how long it is until At; 0: it may go. A place that waits has no leave to go, whatever its forecast:
// its Delay is at least 1 ns.
func (p *Place) Delay() time.Duration {
	p.queue.poll()
	q := p.queue
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

// Wait blocks until the place is granted. See [reserve.Reservation.Wait].
func (p *Place) Wait(ctx context.Context) error {
	q := p.queue
	finished := false
	defer func() {
		if !finished { // the context's methods are the caller's, and may panic
			p.Settle(0)
		}
	}()
	deadline, err := q.clock.Deadline(ctx), done.Cause(ctx)
	q.mu.Lock()
	p.sleepers++
	defer func() {
		p.sleepers--
		q.mu.Unlock()
	}()
	if deadline < p.deadline && p.state < granted {
		p.deadline = deadline
		q.lapses(p)
	}
	for {
		switch p.state {
		case granted:
			if h := p.hold; q.set.Slack > 0 {
				q.mu.Unlock()
				if why := h.wait(ctx); why != reserve.ErrCancelled || err == nil {
					err = why
				}
				q.mu.Lock()
			}
			finished = err == nil
			return err
		case over:
			finished = true
			return p.failure()
		}
		if err != nil {
			finished = true
			h := q.leave(p, err)
			q.mu.Unlock()
			q.gone(h)
			q.mu.Lock()
			return err
		}
		if p.hold != nil {
			err = p.waitFor(ctx, p.hold)
		} else {
			err = p.waitForTurn(ctx)
		}
	}
}

// waitFor waits until the time of the hold has come, and then has the queue look. The queue must be locked, and is
// unlocked meanwhile.
func (p *Place) waitFor(ctx context.Context, h *hold) (err error) {
	q := p.queue
	last := h.awaited()
	q.mu.Unlock()
	defer q.mu.Lock()
	err = last.Wait(ctx)
	q.mu.Lock()
	mine := p.hold == h && p.state == bound && h.awaited() == last
	there := mine && err == nil && h.arrived()
	lost := p.hold == h && p.state == granted // meanwhile: then the wait there may have given the permits back
	q.mu.Unlock()
	switch {
	case lost && err != reserve.ErrCancelled:
		return err
	case !mine || err == nil && !there: // it was handed on, or granted meanwhile; or another limit is later
		return done.Cause(ctx)
	case err == nil:
		err = q.lookFor(ctx)
	}
	return err
}

// waitForTurn waits until the place is bound, or over. The queue must be locked, and is unlocked meanwhile.
func (p *Place) waitForTurn(ctx context.Context) error {
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	changed := p.changed
	p.queue.mu.Unlock()
	defer p.queue.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Cancel gives back what the place has. It is Settle(0).
func (p *Place) Cancel() { p.Settle(0) }

// Charge corrects the account of a granted place, whose caller settles each limit by itself.
func (p *Place) Charge(actual int) {
	q := p.queue
	actual = max(0, actual)
	q.mu.Lock()
	if p.settled || p.state != granted {
		q.mu.Unlock()
		return
	}
	p.settled = true
	if actual != p.Permits {
		q.order.Settle(q.now(), p, actual-p.Permits)
	}
	q.mu.Unlock()
	q.changed()
}

// Settle says how many permits the request has used, or will use. See [reserve.Reservation.Settle].
func (p *Place) Settle(actual int) {
	q := p.queue
	actual = max(0, actual)
	q.mu.Lock()
	if p.settled || p.state == over {
		q.mu.Unlock()
		return
	}
	p.settled = true
	now := q.now()
	var released *hold
	switch {
	case p.state == granted:
		h := p.hold
		if actual != p.Permits {
			q.order.Settle(now, p, actual-p.Permits)
		}
		if actual == 0 {
			p.told = h.time()
			p.state, p.err = over, reserve.ErrCancelled
		}
		q.mu.Unlock()
		h.settle(actual)
		q.changed()
		return
	case actual == 0:
		released = q.leave(p, reserve.ErrCancelled)
	case actual < p.Permits:
		q.order.Resize(now, p, actual)
		p.Permits = actual
		released = q.release(p)
	default:
		p.extra = actual - p.Permits
	}
	q.mu.Unlock()
	q.left(released)
}

// A PanicError is a panic of something of the caller's, such as its own Reserver. It is thrown again in the name of the
// caller for whom that was asked.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("%v\n\n%s", e.Value, e.Stack) }

// Unwrap returns the value, if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// failure returns why the place is over, or panics if the reason is a panic: that is the caller's.
func (p *Place) failure() error {
	if e, ok := p.err.(*PanicError); ok {
		panic(e)
	}
	return p.err
}

// caught makes an error of a panic.
func caught(value any) error { return &PanicError{Value: value, Stack: debug.Stack()} }

// A promise is a place as the promise behind a reservation: the name of its first method is that of a field of Place.
type promise struct{ *Place }

func (p promise) Permits() int { return p.Place.Permits }
func (p promise) Begin()       { p.each((*reserve.Reservation).Begin) }
func (p promise) End()         { p.each((*reserve.Reservation).End) }

func (p *Place) each(f func(*reserve.Reservation)) {
	p.queue.mu.Lock()
	h := p.hold
	ok := p.state == granted
	p.queue.mu.Unlock()
	for i := range h.partsIf(ok) {
		f(h.parts[i].r)
	}
}

// Reservation returns the reservation whose promise the place is.
func (p *Place) Reservation() reserve.Reservation { return reserve.NewReservation(promise{p}) }

// PlaceOf returns the place in this queue that a reservation stands for: its own, or that of a reservation that it
// holds in turn. Nil: there is none.
func (q *Queue) PlaceOf(r *reserve.Reservation) *Place {
	p, ok := (*engine.Reservation)(r).Promise().(promise)
	if !ok || p.queue == q {
		return p.Place
	}
	p.queue.mu.Lock()
	h := p.hold
	p.queue.mu.Unlock()
	for i := range h.partsIf(h != nil) {
		if r := h.parts[i].r; r != nil {
			if place := q.PlaceOf(r); place != nil {
				return place
			}
		}
	}
	return nil
}

// A placeContext is the context in which limits are asked in a place's name. It has the values of the caller's. It
// does not end with it, because a reservation outlives the context of the request for it.
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

// A Rank is a request's place in an order, for a request that asks again. It goes before requests that first asked
// after it. The zero value is that of a new request.
type Rank struct {
	Number  uint64
	Arrived int64
}

// numbers number all requests, so that those of several queues are comparable where they meet.
var numbers atomic.Uint64

// Ranked returns the rank that a place got from FIFO.Push.
func (p *Place) Ranked() Rank { return p.rank }

// join gives a place a new rank, or that of a request that asks again.
func (p *Place) join(now int64) {
	p.rank = Rank{numbers.Add(1), now}
	if r := p.Rank; r != nil {
		if r.Number == 0 {
			*r = p.rank
		}
		p.rank = *r
	}
}

type rankKey struct{}

// WithRank returns a context whose request has that rank, or gets one.
func WithRank(ctx context.Context, r *Rank) context.Context {
	return context.WithValue(ctx, rankKey{}, r)
}

// RankOf returns a context's rank; nil: it has none.
func RankOf(ctx context.Context) *Rank {
	r, _ := ctx.Value(rankKey{}).(*Rank)
	return r
}
