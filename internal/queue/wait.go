package queue

import (
	"context"
	"errors"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/reserve"
)

// Wait blocks until the place is granted: see [reserve.Reservation.Wait].
func (p *Place) Wait(ctx context.Context) (err error) {
	q := p.queue
	finished := false
	defer func() {
		if !finished { // also where a method of the context, which is the caller's, panics
			p.giveUp()
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
		if h := p.hold; h != nil {
			err = p.waitFor(ctx, h)
		} else if err = p.waitForTurn(ctx); err != nil {
			q.mu.Unlock()
			err = p.last(ctx, err)
			q.mu.Lock()
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
	back := p.parting(q.leave(p, err, false))
	q.mu.Unlock()
	defer q.mu.Lock()
	q.left(back, false)
	return err
}

// last looks a last time: the permits may be due at the moment at which the context ended. Then it returns nil,
// otherwise err.
func (p *Place) last(ctx context.Context, err error) error {
	q := p.queue
	if q.claim(p) {
		return nil
	}
	if _ = q.look(ctx, p); q.claim(p) {
		return nil
	}
	return err
}

// claim grants a place that holds all it needs, and reports whether it may go.
func (q *Queue) claim(p *Place) bool {
	now := q.lock()
	defer q.mu.Unlock()
	if h := p.hold; p.state == bound && h.full && h.delay() <= h.slack && q.first() == p && !p.closed(h.option) {
		q.grant(now, h, h.delay())
	}
	return p.state == granted && p.hold.delay() <= 0
}

// waitFor waits for the hold's time, and looks.
func (p *Place) waitFor(ctx context.Context, h *hold) (err error) {
	q := p.queue
	last := h.awaited()
	q.mu.Unlock()
	defer q.mu.Lock()
	err = last.Wait(ctx)
	mine, lost := p.arrived(h, last, err)
	ended := done.Cause(ctx)
	switch {
	case lost:
		return err
	case mine && err != nil: // the wait has given the permits back
		if ended != nil || !p.elsewhere(err) {
			return err
		}
	case !mine: // it was handed on, or granted meanwhile; or another limit is later
		if ended != nil {
			return p.last(ctx, ended)
		}
		return nil
	}
	if err = q.look(ctx, p); err != nil && q.claim(p) {
		return nil
	}
	return err
}

// elsewhere binds a place anew, maybe to another option, after a wait that failed because it was too late.
func (p *Place) elsewhere(err error) bool {
	var late *reserve.WaitError
	if len(p.Options) == 1 || p.fails >= patience || err != reserve.ErrCancelled && !errors.As(err, &late) {
		return false
	}
	q := p.queue
	q.mu.Lock()
	h := q.release(p)
	p.fails++
	q.mu.Unlock()
	if h != nil {
		h.cancel(false)
	}
	return true
}

// arrived reports whether the time of a hold that a caller has waited for has come, or the wait has failed: then it has
// given the permits back. Lost: they were granted meanwhile.
func (p *Place) arrived(h *hold, last *reserve.Reservation, err error) (mine, lost bool) {
	q := p.queue
	q.lock()
	defer q.mu.Unlock()
	failed := err != nil && err != reserve.ErrCancelled
	switch p.state {
	case binding:
		return failed, false
	case bound:
		if failed && p.hold.holds(last) {
			return true, false
		}
		return p.hold == h && h.awaited() == last && (err != nil || h.arrived()), false
	}
	return false, p.state == granted && failed && p.hold.holds(last)
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

func (p *Place) correct(actual int) {
	if p.settled = true; actual != p.Permits {
		p.queue.order.Settle(&p.entry, actual-p.Permits)
	}
}

func (p *Place) Settle(actual int) { p.settleThen(max(0, actual), false, true) }

// giveUp is Settle(0) for a caller that does not get what it has waited for, although it has settled it already. Where
// a limit may block, it does not wait.
func (p *Place) giveUp() { p.settleThen(0, true, false) }

func (p *Place) settleThen(actual int, again, waits bool) {
	q := p.queue
	back, looks := p.settle(actual, again)
	switch h := back.hold; {
	case !looks:
	case h == nil || !h.settled:
		q.left(back, waits)
	case q.blocks && !q.prompt && !waits:
		go q.settled(h, actual)
	default:
		q.settled(h, actual)
	}
}

func (q *Queue) settled(h *hold, actual int) {
	defer q.changed()
	h.settle(actual)
}

// settle returns what is to be given back, or settled if the hold is.
func (p *Place) settle(actual int, again bool) (back parting, looks bool) {
	q := p.queue
	now := q.lock()
	defer q.mu.Unlock()
	if p.state == over || p.settled && (!again || p.state == granted && p.hold.settled) {
		return back, false
	}
	if p.state == granted {
		h := p.hold
		p.correct(actual)
		if h.settled = true; actual == 0 {
			p.at = min(h.time(), add(now, h.delay()))
			p.state, p.err = over, reserve.ErrCancelled
		}
		return parting{hold: h}, true
	}
	p.settled = true
	switch {
	case actual == 0:
		return p.parting(q.leave(p, reserve.ErrCancelled, false)), true
	case p.state == binding: // what is asked stays as it is
		p.resized = actual
		return back, true
	}
	q.resize(p, actual)
	return p.parting(q.release(p)), true
}

// resize makes a waiting place ask for that many permits. The queue's lock is held.
func (q *Queue) resize(p *Place, permits int) {
	p.Permits = permits
	q.order.Resize(&p.entry, permits, p.asked())
}

// leave takes out a place that is not granted, and returns its hold for left. The queue's lock is held.
func (q *Queue) leave(p *Place, why error, refused bool) *hold {
	h := q.release(p)
	if h != nil {
		p.at = h.time()
	}
	if q.unbind(p); q.asking == p {
		q.asking = nil
	}
	if p.asks != nil {
		p.asks.stop() // no caller waits for the limit's answer
	}
	q.over(p)
	q.order.Remove(&p.entry)
	if refused {
		q.order.Refuse(&p.entry)
	}
	p.state, p.err = over, why
	p.signal()
	return h
}

// over forgets the deadline of a place, and the timer behind the last. It needs the queue's lock.
func (q *Queue) over(p *Place) {
	p.lapse.Leave()
	if q.waiting.Add(-1) == 0 && q.timer != nil {
		q.timer.Stop()
		q.timer, q.timed = nil, never
	}
}

func (q *Queue) lapses(p *Place) {
	p.lapse.Key, p.lapse.Of = p.latest, p
	q.deadlines[p.Class].Put(&p.lapse)
}
