package late

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
)

// anyone is a Leave above all that there are.
const anyone = math.MaxInt

// A Queue is requests in an order, in front of a target. It comes from [New]. All methods may be called at the
// same time.
type Queue struct {
	order  Order
	target Target
	clock  engine.Clock
	remote bool // to reserve and to cancel takes a while
	blocks bool // to reserve may block

	waiting atomic.Int64 // places that are waiting or bound
	kicked  atomic.Bool  // a look has been asked for
	epoch   atomic.Int64 // how often the limit has changed
	quiet   atomic.Bool  // the queue itself changes the limit
	// deaf is true while a caller waits for the hold at the only limit that there is: then nothing needs to be done when
	// the limit grants earlier.
	deaf atomic.Bool

	binding lock // held while the queue reserves; taken before mu

	mu        sync.Mutex
	seen      int64       // the latest reading of the clock
	bound     *hold       // at most one
	retry     int64       // when a place that was passed over because of its Leave may go
	lapse     []lapseHeap // by group: places that must go by a time
	notBefore int64       // the limit grants nothing before
	cost      int64       // how long a call to a remote limit took lately
	timer     stopper     // looks again
	timed     int64       // when; or never
}

// A lock is a mutex. Where it is held during calls that may block it is a channel, so that the time of a
// testing/synctest bubble goes on meanwhile.
type lock struct {
	mutex sync.Mutex
	calls chan struct{} // nil: the mutex
}

func (l *lock) lock() {
	if l.calls != nil {
		l.calls <- struct{}{}
	} else {
		l.mutex.Lock()
	}
}

func (l *lock) unlock() {
	if l.calls != nil {
		<-l.calls
	} else {
		l.mutex.Unlock()
	}
}

type stopper interface{ Stop() bool }

// New returns a queue with an order in front of a target. A nil clock is the real one. The places are in so many
// groups.
func New(order Order, target Target, clock clockwork.Clock, groups int) *Queue {
	q := &Queue{order: order, target: target, remote: target.remote(), blocks: target.blocks(), lapse: make([]lapseHeap, groups), timed: never}
	if q.blocks {
		q.binding.calls = make(chan struct{}, 1)
	}
	if clock != nil {
		q.clock = engine.On(clock)
	}
	q.clock = q.clock.Begun()
	q.notBefore = math.MinInt64
	weakly := weak.Make(q)
	target.watch(func(later bool) bool {
		q := weakly.Value()
		if q != nil && !q.quiet.Load() && (later || !q.deaf.Load()) {
			q.kick()
		}
		return q != nil
	})
	return q
}

// Enter puts a place into the queue, for at most maxWait and the context's deadline. If its forecast is later than
// these it takes nothing and returns a *[reserve.WaitError].
func (q *Queue) Enter(ctx context.Context, p *Place, maxWait time.Duration) error {
	if err := done.Cause(ctx); err != nil {
		return err
	}
	deadline := q.clock.Deadline(ctx)
	p.queue, p.ctx = q, ctx
	q.mu.Lock()
	if h := q.bound; h != nil && h.place.sleepers == 0 && h.delay() <= 0 { // the timer may be late
		q.mu.Unlock()
		if err := q.lookFor(ctx); err != nil {
			return err
		}
		q.mu.Lock()
	}
	now := q.now()
	p.begin, p.within, p.deadline = now, never, deadline
	if maxWait < reserve.Forever {
		p.within = add(now, max(0, maxWait))
	}
	if err := q.order.Push(now, p); err != nil {
		q.mu.Unlock()
		return err
	}
	q.waiting.Add(1)
	look := q.urgent(now, p) || q.hopeless(now)
	q.mu.Unlock()
	if look {
		if err := q.lookFor(ctx); err != nil {
			return q.refuse(p, err)
		}
	}
	return q.admit(p, maxWait)
}

// refuse takes a place out again that has entered, if it has not been granted meanwhile.
func (q *Queue) refuse(p *Place, why error) error {
	q.mu.Lock()
	if p.state == granted {
		q.mu.Unlock()
		return nil
	}
	if p.state == over {
		why = p.err
	} else {
		q.order.Lapsed(q.now(), p)
	}
	h := q.leave(p, why)
	q.mu.Unlock()
	q.gone(h)
	return why
}

// urgent reports whether the place may be the one to bind now. The queue must be locked.
func (q *Queue) urgent(now int64, p *Place) bool {
	first := q.order.First(now, anyone)
	for first != nil && first != p && first.Leave > p.Leave {
		first = q.order.First(now, first.Leave)
	}
	return first == p
}

// admit refuses a place that has entered, if its forecast is too late.
func (q *Queue) admit(p *Place, maxWait time.Duration) error {
	q.mu.Lock()
	now := q.now()
	var wait time.Duration
	switch p.state {
	case granted:
		q.mu.Unlock()
		return nil
	case over:
		defer q.mu.Unlock()
		return p.err
	case bound:
		wait = p.hold.delay()
	case waiting:
		if p.latest() == never || p.latest() > now && q.inTime(now, p) {
			q.stays(now, p)
			return nil
		}
		wait = q.forecast(p)
	}
	if add(now, wait) <= p.latest() && (wait == 0 || maxWait > 0) {
		q.stays(now, p)
		return nil
	}
	q.mu.Unlock()
	return q.refuse(p, p.late(now, wait))
}

// stays has the queue look when a place that was admitted has to go at the latest. The queue must be locked, and is
// unlocked then.
func (q *Queue) stays(now int64, p *Place) {
	if p.latest() < never {
		q.lapses(p)
		q.arm(now)
	}
	q.mu.Unlock()
}

// late returns the error of a place that would have to wait so much longer, counted from when it entered.
func (p *Place) late(now int64, wait time.Duration) error {
	wait = add(time.Duration(now-p.begin), wait)
	if p.deadline < p.within {
		return &reserve.WaitError{Wait: wait, MaxWait: time.Duration(p.deadline - p.begin), Cause: context.DeadlineExceeded}
	}
	return &reserve.WaitError{Wait: wait, MaxWait: time.Duration(p.within - p.begin)}
}

// Waiting returns how many requests wait.
func (q *Queue) Waiting() int { return int(q.waiting.Load()) }

// Locked calls f under the queue's lock, with its time: for what reads the order.
func (q *Queue) Locked(f func(now int64)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f(q.now())
}

func add[T int64 | time.Duration](t T, d time.Duration) T { return saturate.Add(t, T(d)) }
