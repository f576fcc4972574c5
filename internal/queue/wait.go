package queue

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/reserve"
)

// Wait blocks until the place is granted: see [reserve.Reservation.Wait].
func (p *Place) Wait(ctx context.Context) (err error) {
	q := p.queue
	finished := false
	defer func() {
		if !finished { // also where a method of the context, which is the caller's, panics
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
	if deadline < p.latest && p.state < granted {
		p.latest, p.byDeadline = deadline, true
		q.lapses(p)
	}
	for p.state < granted && err == nil {
		if p.hold != nil {
			err = p.waitFor(ctx, p.hold)
		} else {
			err = p.waitForTurn(ctx)
		}
	}
	if p.state == granted {
		err = p.waitOut(ctx, err)
		finished = err == nil
		return err
	}
	finished = true
	if p.state == over {
		return p.failure()
	}
	h := q.leave(p, err, false)
	q.mu.Unlock()
	q.left(h)
	q.mu.Lock()
	return err
}

// waitFor waits for the hold's time, and looks.
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
		err = q.look(ctx)
	}
	return err
}

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

// waitOut waits for the rest of the slack, after a wait that returned err.
func (p *Place) waitOut(ctx context.Context, err error) error {
	h := p.hold
	if h.asked == 0 {
		return err
	}
	p.queue.mu.Unlock()
	defer p.queue.mu.Lock()
	if why := h.wait(ctx); why != reserve.ErrCancelled || err == nil {
		return why
	}
	return err
}

// Cancel is Settle(0).
func (p *Place) Cancel() { p.Settle(0) }

// Charge corrects a granted place whose caller settles each limit itself.
func (p *Place) Charge(actual int) {
	q := p.queue
	q.mu.Lock()
	ok := p.state == granted && !p.settled
	if ok {
		p.correct(max(0, actual))
	}
	q.mu.Unlock()
	if ok {
		q.changed()
	}
}

// correct settles the account of a granted place.
func (p *Place) correct(actual int) {
	if p.settled = true; actual != p.Permits {
		p.queue.now()
		p.queue.order.settle(p, actual-p.Permits)
	}
}

// Settle is [reserve.Reservation.Settle].
func (p *Place) Settle(actual int) {
	q := p.queue
	actual = max(0, actual)
	q.mu.Lock()
	if p.settled || p.state == over {
		q.mu.Unlock()
		return
	}
	if p.state == granted {
		h := p.hold
		p.correct(actual)
		if actual == 0 {
			p.at = q.clock.Since(h.time())
			p.state, p.err = over, reserve.ErrCancelled
		}
		q.mu.Unlock()
		h.settle(actual)
		q.changed()
		return
	}
	p.settled = true
	var released *hold
	if actual == 0 {
		released = q.leave(p, reserve.ErrCancelled, false)
	} else {
		q.order.resize(p, actual)
		released = q.release(p)
	}
	q.mu.Unlock()
	q.left(released)
}

// leave takes out a place that is not granted, and returns its hold for left. The queue's lock is held.
func (q *Queue) leave(p *Place, why error, refused bool) *hold {
	q.now()
	h := q.release(p)
	if h != nil {
		p.at = q.clock.Since(h.time())
	}
	q.unbind(p)
	if p.stop != nil {
		p.stop() // no caller waits for the limit's answer
	}
	q.over(p)
	q.order.of(p).remove(p)
	if refused {
		q.order.of(p).counts.Refused += uint64(p.Permits)
	}
	p.state, p.err = over, why
	p.signal()
	return h
}

// over forgets the deadline of a place, and the timer behind the last. The queue's lock is held.
func (q *Queue) over(p *Place) {
	p.lapse.leave()
	if q.waiting.Add(-1) == 0 && q.timer != nil {
		q.timer.Stop()
		q.timer, q.timed = nil, never
	}
}

// lapses keeps the place among those with a deadline. The queue's lock is held.
func (q *Queue) lapses(p *Place) {
	p.lapse.key, p.lapse.of = p.latest, p
	q.order.of(p).lapse.put(&p.lapse)
}

// left cancels a hold, nil if none, and looks. Where a limit may block, nobody waits for that.
func (q *Queue) left(h *hold) {
	back := func() {
		if h != nil {
			h.cancel()
		}
		q.changed()
	}
	if h != nil && q.blocks {
		go back()
	} else {
		back()
	}
}

// A PanicError is a panic of the caller's code, such as its own Reserver. The call that asked throws it again.
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

// failure returns why the place is over, or throws its panic.
func (p *Place) failure() error {
	if e, ok := p.err.(*PanicError); ok {
		panic(e)
	}
	return p.err
}

func caught(value any) error { return &PanicError{Value: value, Stack: debug.Stack()} }
