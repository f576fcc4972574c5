package late

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
)

// never is the last time that there is.
const never = saturate.Never

// A Place is a request in a queue. The caller that makes one sets the exported fields before Enter.
type Place struct {
	Permits int // at least 1
	Leave   int // so many permits must be left at the limit when it goes
	Group   int // places with the same number are refused in the order of their deadlines
	Data    any // the order's
	Hint    any // the target's
	// Except reports whether a member of the target must not be chosen; nil: none.
	Except func(member int) bool

	queue  *Queue
	ctx    context.Context
	begin  int64 // when it entered
	within int64 // the end of its longest wait, or never

	// Guarded by the queue's lock.
	deadline int64 // of its context, or of a context that waits for it; or never
	state    state
	hold     *hold // if it is bound or granted
	own      hold  // its first one
	used     bool  // own is taken
	extra    int   // permits that are charged beyond Permits when it goes
	settled  bool
	sleepers int           // in Wait
	changed  chan struct{} // closed when the state or the hold changes; nil: no caller waits for that
	stop     func()        // ends the call to a remote limit in its name; nil: there was none
	told     time.Time     // what At returned last
	went     int64         // when it was granted
	err      error         // why it is over
	lapse    int           // its index in the heap, plus 1; 0: it is in none
	blocked  int64         // it can't go before, because of Leave; as long as the queue has this epoch
	epoch    int64
}

type state uint8

const (
	waiting state = iota
	bound
	granted
	over
)

// A hold is a reservation at the limit in the name of a place.
type hold struct {
	place *Place
	r     reserve.Reservation
	// A hold for a place with Leave is a trial: a reservation for Permits + Leave. When its time has come, one for Permits
	// replaces it. If the limit is paid later, paid is a reservation behind it, ready when the limit has been paid for it.
	trial  bool
	paid   *reserve.Reservation
	due    bool          // its time has come
	asked  time.Duration // its delay when it was made
	member int
}

// last returns the reservation whose time is the hold's.
func (h *hold) last() *reserve.Reservation {
	if h.paid != nil {
		return h.paid
	}
	return &h.r
}

func (h *hold) delay() time.Duration {
	if h.due {
		return 0
	}
	return h.last().Delay()
}

func (h *hold) cancel() {
	if h.paid != nil {
		h.paid.Cancel()
	}
	h.r.Cancel()
}

// newHold returns an empty hold of the place. Only the holder of the queue's binding calls it.
func (p *Place) newHold() *hold {
	h := &p.own
	if p.used {
		h = new(hold)
	}
	p.used = true
	h.place = p
	return h
}

// latest returns when it must go at the latest.
func (p *Place) latest() int64 { return min(p.within, p.deadline) }

// signal wakes callers that wait for a change of the place. The queue must be locked.
func (p *Place) signal() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// Member returns which member of the target the place was granted at, or is bound to; -1: none.
func (p *Place) Member() int {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	if p.hold == nil {
		return -1
	}
	return p.hold.member
}

// Permits are what the place's reservation is for. See [reserve.Reservation.Permits].
func (p *Place) promised() int { return p.Permits }

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
		p.told = p.hold.last().At()
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
			finished = true
			return nil
		case over:
			finished = true
			return p.err
		}
		if err != nil {
			finished = true
			h := q.leave(p, err)
			q.mu.Unlock()
			q.gone(h)
			q.mu.Lock()
			return err
		}
		if h := p.hold; h != nil {
			err = p.waitFor(ctx, h)
		} else {
			err = p.waitForTurn(ctx)
		}
	}
}

// waitFor waits until the hold's time has come, and then has the queue look. The queue must be locked, and
// is unlocked meanwhile.
func (p *Place) waitFor(ctx context.Context, h *hold) (err error) {
	q := p.queue
	q.mu.Unlock()
	defer q.mu.Lock()
	err = h.last().Wait(ctx)
	q.mu.Lock()
	mine := p.hold == h && p.state == bound
	if mine && err == nil {
		h.due = true
	}
	q.mu.Unlock()
	switch {
	case !mine: // it was handed on, or granted meanwhile
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
			p.told = h.r.At()
			p.state, p.err = over, reserve.ErrCancelled
		}
		q.mu.Unlock()
		h.r.Settle(actual)
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

// A promise is a place as the promise behind a reservation: the name of its first method is that of a field of Place.
type promise struct{ *Place }

func (p promise) Permits() int { return p.Place.promised() }
func (p promise) Cancel()      { p.Settle(0) }

// Reservation returns the reservation whose promise the place is.
func (p *Place) Reservation() reserve.Reservation { return reserve.NewReservation(promise{p}) }

// PlaceOf returns the place in this queue that a reservation stands for: its own, or that of the reservation that it
// holds in turn. Nil: there is none.
func (q *Queue) PlaceOf(r *reserve.Reservation) *Place {
	for {
		p, ok := (*engine.Reservation)(r).Promise().(promise)
		if !ok || p.queue == q {
			return p.Place
		}
		p.queue.mu.Lock()
		h := p.hold
		p.queue.mu.Unlock()
		if h == nil {
			return nil
		}
		r = &h.r
	}
}

// A placeContext is the context in which the target is asked in a place's name. It has the values of the caller's. It
// does not end with it, because a reservation outlives the context of the request for it.
type placeContext Place

func (c *placeContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (c *placeContext) Done() <-chan struct{}       { return nil }
func (c *placeContext) Err() error                  { return nil }
func (c *placeContext) Value(key any) any           { return c.ctx.Value(key) }

// A Rank is a request's place in an order, for a request that asks again. It goes before requests that first asked
// after it. The zero value is that of a new request.
type Rank struct {
	Number  uint64
	Arrived int64
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

type exceptKey struct{}

// WithExcept returns a context whose requests to a pool are not for those members.
func WithExcept(ctx context.Context, except func(member int) bool) context.Context {
	return context.WithValue(ctx, exceptKey{}, except)
}

// ExceptOf returns a context's function; nil: it has none.
func ExceptOf(ctx context.Context) func(member int) bool {
	f, _ := ctx.Value(exceptKey{}).(func(int) bool)
	return f
}
