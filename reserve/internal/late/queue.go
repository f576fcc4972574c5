package late

import (
	"container/heap"
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/hooks"
)

// anyone is a Leave above all that there are.
const anyone = math.MaxInt

// A Queue is requests in an order, in front of a target. It comes from [New]. All methods may be called at the
// same time.
type Queue struct {
	order  Order
	target Target
	clock  hooks.Clock
	remote bool // to reserve and to cancel takes a while

	waiting atomic.Int64 // places that are waiting or bound
	kicked  atomic.Bool  // a look has been asked for
	epoch   atomic.Int64 // how often the limit has changed
	quiet   atomic.Bool  // the queue itself changes the limit
	// deaf is true while nothing needs to be done when the limit grants earlier: a caller waits for the hold at the only limit that there is.
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

// A lock is a mutex, or a channel where it is held during calls to a remote limit: so the time of a testing/synctest bubble goes on meanwhile.
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

// New returns a queue with an order in front of a target, with a clock (nil: the real one), and with so many groups of places.
func New(order Order, target Target, clock clockwork.Clock, groups int) *Queue {
	q := &Queue{order: order, target: target, remote: target.remote(), lapse: make([]lapseHeap, groups), timed: never}
	if q.remote {
		q.binding.calls = make(chan struct{}, 1)
	}
	if clock != nil {
		q.clock = hooks.On(clock)
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

// stays has the queue look when a place that was admitted has to go at the latest. The queue must be locked, and is unlocked then.
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

// Look has the queue look at once, for a caller that knows that a limit has changed of which the queue can't know.
func (q *Queue) Look() {
	q.epoch.Add(1)
	q.look()
}

// look binds the place that is the first now, and grants those whose time has come.
func (q *Queue) look() {
	q.binding.lock()
	defer q.binding.unlock()
	for q.step() {
	}
}

// lookFor has the queue look, for a caller with that context. At a remote limit this may take long: if the context ends
// meanwhile, it returns the cause, and the queue looks on.
func (q *Queue) lookFor(ctx context.Context) error {
	if !q.remote || ctx.Done() == nil {
		q.look()
		return nil
	}
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		q.look()
	}()
	select {
	case <-looked:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// lookSoon has the queue look, for a caller to whom it does not matter when: at a remote limit elsewhere.
func (q *Queue) lookSoon() {
	if q.remote {
		go q.look()
	} else {
		q.look()
	}
}

// step does the next thing that is to be done, and reports whether there may be another one. Only the holder of binding calls it.
func (q *Queue) step() (more bool) {
	q.mu.Lock()
	now := q.now()
	if h := q.expire(now); h != nil {
		q.mu.Unlock()
		q.cancel(h)
		return true
	}
	h := q.bound
	q.retry = never
	first := q.choose(now)
	switch {
	case first == nil:
		q.arm(now)
		q.mu.Unlock()
		return false
	case h != nil && (h.place != first || q.target.better(h)):
		q.release(h.place)
		q.mu.Unlock()
		q.cancel(h)
		return true
	case h != nil && h.delay() <= 0:
		return q.grant(now, h)
	case h != nil:
		q.arm(now)
		q.mu.Unlock()
		return false
	case q.remote && now < q.askFrom():
		q.arm(now)
		q.mu.Unlock()
		return false
	}
	remaining := first.remaining(now)
	q.mu.Unlock()
	q.bind(first, first.Leave > 0, remaining, false)
	return true
}

// grant lets the bound place go, unless its hold is a trial: then it is replaced by one for what the place asks. The queue must be
// locked, and is unlocked then.
func (q *Queue) grant(now int64, h *hold) (more bool) {
	p := h.place
	if h.trial {
		q.release(p)
		q.mu.Unlock()
		q.cancel(h)
		q.bind(p, false, 0, true) // there is room for it now; if there is none any more, it stays waiting
		return true
	}
	q.bound = nil
	q.over(p)
	q.order.Grant(now, p)
	p.state, p.went = granted, now
	p.signal()
	if rate := q.target.spacing(); q.remote {
		q.notBefore = math.MinInt64
		if at := q.clock.Since(h.r.At()); rate > 0 && at > p.begin {
			q.notBefore = add(at, time.Duration(float64(time.Second)/rate))
		}
	}
	if p.extra > 0 {
		q.order.Settle(now, p, p.extra)
	}
	q.mu.Unlock()
	engine.Count(&h.r)
	if p.extra > 0 {
		h.r.Settle(p.Permits + p.extra)
	}
	if q.remote { // the place that goes does not wait until the next one is bound
		if q.waiting.Load() > 0 {
			q.lookSoon()
		}
		return false
	}
	return true
}

// cancel cancels a hold that the queue has taken away, for a caller that looks again afterwards: so the watcher need not.
func (q *Queue) cancel(h *hold) {
	q.quiet.Store(true)
	defer q.quiet.Store(false)
	h.cancel()
}

// bind reserves in the name of a place, or makes a trial, and binds it, unless it has left meanwhile. If there is an error it takes the place
// out; but a place that has had its trial, and finds that there is no room any more, stays.
func (q *Queue) bind(p *Place, trial bool, maxWait time.Duration, tried bool) {
	begin := q.clock.Now()
	complete := false
	defer func() {
		if !complete { // a panic
			q.fail(p, reserve.ErrCancelled)
		}
	}()
	ctx := context.Context((*placeContext)(p))
	if q.remote {
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		defer stop()
		q.mu.Lock()
		if p.stop = stop; p.state >= granted { // it has left
			stop()
		}
		q.mu.Unlock()
	}
	h, err := q.target.reserve(ctx, p, trial, maxWait)
	complete = true
	q.mu.Lock()
	now := q.now()
	if q.remote {
		q.cost += (now - begin - q.cost) / 4
	}
	if err == nil && p.state == waiting {
		q.bound, p.hold, p.state = h, h, bound
		if h.delay() > 0 { // else it is granted at once
			p.signal()
		}
		q.mu.Unlock()
		return
	}
	var wait *reserve.WaitError
	late := errors.As(err, &wait)
	if late && add(now, wait.Wait) > p.latest() {
		err = p.late(now, wait.Wait)
	}
	q.mu.Unlock()
	switch {
	case err == nil:
		q.cancel(h)
	case !late || !tried:
		q.fail(p, err)
	}
}

// fail takes out a place with an error.
func (q *Queue) fail(p *Place, err error) {
	q.mu.Lock()
	if p.state < granted {
		q.order.Lapsed(q.now(), p)
	}
	h := q.leave(p, err)
	q.mu.Unlock()
	if h != nil {
		h.cancel()
	}
}

// remaining returns how long the place may still wait.
func (p *Place) remaining(now int64) time.Duration {
	if p.latest() == never {
		return reserve.Forever
	}
	return max(0, time.Duration(saturate.Add(p.latest(), -now)))
}

// choose returns which place to bind: the first one, or one behind it that needs to leave fewer permits, if the first can't go yet
// because of those. The queue must be locked.
func (q *Queue) choose(now int64) (first *Place) {
	first = q.order.First(now, anyone)
	for first != nil && first.Leave > 0 {
		other := q.order.First(now, first.Leave)
		if other == nil {
			break
		}
		if h := q.bound; h != nil && h.place == first && h.trial {
			if d := h.delay(); d > 0 {
				first.blocked, first.epoch = add(now, d), q.epoch.Load()
			}
		}
		if first.epoch != q.epoch.Load() || now >= first.blocked {
			break
		}
		q.retry = min(q.retry, first.blocked)
		first = other
	}
	return first
}

// hopeless reports whether expire would refuse a place. The queue must be locked.
func (q *Queue) hopeless(now int64) bool {
	for i := range q.lapse {
		if h := q.lapse[i]; len(h) > 0 && q.best(now, h[0]) > h[0].latest() {
			return true
		}
	}
	return false
}

// expire refuses places that are certain to be too late. If one of them was bound it returns the hold, for the caller to
// cancel. The queue must be locked.
func (q *Queue) expire(now int64) *hold {
	for i := range q.lapse {
		for h := &q.lapse[i]; len(*h) > 0; {
			p := (*h)[0]
			best := q.best(now, p)
			if best <= p.latest() {
				break
			}
			held := q.leave(p, p.late(now, time.Duration(best-now)))
			q.order.Lapsed(now, p)
			if held != nil {
				return held
			}
		}
	}
	return nil
}

// best returns the earliest time at which a place can go. The queue must be locked.
func (q *Queue) best(now int64, p *Place) int64 {
	h := q.bound
	switch {
	case h == nil:
		return now
	case h.place == p:
		return add(now, h.delay())
	}
	if !q.target.paidLater() && p.Permits+p.Leave < h.place.Permits+h.place.Leave {
		return now
	}
	at := add(now, h.delay())
	rate := q.target.certain()
	if rate == 0 || !q.order.Above(h.place, p) {
		return at
	}
	before := q.order.Before(now, p)
	if !q.target.paidLater() {
		before += p.Permits - h.place.Permits // the bound one is paid for by then
	}
	return add(at, time.Duration(float64(before)/rate*float64(time.Second)))
}

// base returns how long the limit grants nothing, by what the queue knows. The queue must be locked.
func (q *Queue) base(now int64) time.Duration {
	switch {
	case q.bound != nil:
		return q.bound.delay()
	case q.remote:
		return time.Duration(max(0, saturate.Add(q.notBefore, -now)))
	}
	return 0
}

// inTime reports whether a waiting place would go in time even if all that may go before it do. That is quick to know. The queue must be
// locked.
func (q *Queue) inTime(now int64, p *Place) bool {
	atMost := q.order.AtMost(now, p)
	if q.bound != nil {
		atMost -= q.bound.place.Permits
	}
	wait := q.target.forecast(func(yield func(int) bool) {
		if atMost > 0 {
			yield(atMost)
		}
	}, q.bound, q.base(now), p)
	return add(now, wait) <= p.latest()
}

// forecast returns how long a waiting place would wait if no other arrived. The queue must be locked.
func (q *Queue) forecast(p *Place) time.Duration {
	now := q.now()
	h := q.bound
	return q.target.forecast(func(yield func(int) bool) {
		for other := range q.order.Ahead(now, p) {
			if (h == nil || other != h.place) && !yield(other.Permits) {
				return
			}
		}
	}, h, q.base(now), p)
}

// release takes the hold away from a place, which waits again, and returns it. The queue must be locked.
func (q *Queue) release(p *Place) *hold {
	if p.state != bound {
		return nil
	}
	h := p.hold
	p.state, p.hold, q.bound = waiting, nil, nil
	return h
}

// leave takes a place that has not been granted out of the queue, and returns the hold that it had, for left to cancel. The queue must be
// locked.
func (q *Queue) leave(p *Place, why error) *hold {
	if p.state >= granted {
		return nil
	}
	h := q.release(p)
	if h != nil {
		p.told = h.last().At()
	}
	if p.stop != nil {
		p.stop() // nobody waits for the limit's answer
	}
	q.over(p)
	q.order.Remove(q.now(), p)
	p.state, p.err = over, why
	p.signal()
	return h
}

// over says that a place does not wait any more. The queue must be locked.
func (q *Queue) over(p *Place) {
	if p.lapse > 0 {
		heap.Remove(&q.lapse[p.Group], p.lapse-1)
	}
	if q.waiting.Add(-1) == 0 && q.timer != nil {
		q.timer.Stop()
		q.timer, q.timed = nil, never
	}
}

// lapses keeps the place in the heap of those that must go by a time. The queue must be locked.
func (q *Queue) lapses(p *Place) {
	switch h := &q.lapse[p.Group]; {
	case p.latest() == never:
	case p.lapse == 0:
		heap.Push(h, p)
	default:
		heap.Fix(h, p.lapse-1)
	}
}

// left cancels the hold of a place that has left or become smaller, and has the queue look. Nil: it had none.
func (q *Queue) left(h *hold) {
	if h != nil {
		h.cancel()
	}
	q.changed()
}

// gone is left for a caller that must not wait for a remote limit.
func (q *Queue) gone(h *hold) {
	if h != nil && q.remote {
		go q.left(h)
	} else {
		q.left(h)
	}
}

// changed has the queue look after a change that may have made another place the first.
func (q *Queue) changed() {
	if q.waiting.Load() == 0 {
		return
	}
	q.mu.Lock()
	now := q.now()
	h := q.bound
	first := q.order.First(now, anyone)
	same := h != nil && h.place == first && !q.target.many()
	q.mu.Unlock()
	if !same {
		q.lookSoon()
	}
}

// kick has the queue look, soon and elsewhere.
func (q *Queue) kick() {
	q.epoch.Add(1)
	if q.waiting.Load() > 0 && q.kicked.CompareAndSwap(false, true) {
		go func() {
			q.kicked.Store(false)
			q.look()
		}()
	}
}

// poll has the queue look if the time of the bound place has come and no caller waits for that.
func (q *Queue) poll() {
	q.mu.Lock()
	h := q.bound
	due := h != nil && h.place.sleepers == 0 && h.delay() <= 0
	q.mu.Unlock()
	if due {
		q.lookSoon()
	}
}

// askFrom returns when to reserve at a remote limit: shortly before that can grant. The queue must be locked.
func (q *Queue) askFrom() int64 { return saturate.Add(q.notBefore, -2*q.cost-int64(soon)) }

// soon is how long before it could go at the earliest a place is bound at a remote limit, beside the time of two calls.
const soon = time.Millisecond

// arm sets the timer to the next moment at which there may be something to do that no caller does. The queue must be locked.
func (q *Queue) arm(now int64) {
	if q.waiting.Load() == 0 {
		return
	}
	h := q.bound
	q.deaf.Store(h != nil && h.place.sleepers > 0 && !h.trial && q.retry == never && !q.target.many())
	at := min(q.order.Changes(now), q.retry)
	for i := range q.lapse {
		if h := q.lapse[i]; len(h) > 0 {
			at = min(at, add(h[0].latest(), 1))
		}
	}
	if h != nil && h.place.sleepers == 0 {
		at = min(at, add(now, h.delay()))
	} else if h == nil && q.remote {
		at = min(at, q.askFrom())
	}
	if at >= q.timed || at == never {
		return
	}
	if q.timer != nil {
		q.timer.Stop()
	}
	q.timed = at
	d := max(0, time.Duration(at-now))
	if q.clock.Fake != nil {
		q.timer = (*q.clock.Fake).AfterFunc(d, q.alarm)
	} else {
		q.timer = time.AfterFunc(d, q.alarm)
	}
}

// alarm looks when the timer has fired.
func (q *Queue) alarm() {
	q.mu.Lock()
	q.timer, q.timed = nil, never
	q.mu.Unlock()
	if q.waiting.Load() > 0 {
		q.look()
	}
}

// now reads the clock. The queue must be locked.
func (q *Queue) now() int64 {
	if t := q.clock.Now(); t > q.seen {
		q.seen = t
	}
	return q.seen
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
