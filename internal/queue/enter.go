package queue

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/order"
	"github.com/nextfree/pace/reserve"
)

// Enter puts a place into the queue, until maxWait or the context's deadline. It returns a *[reserve.WaitError] if the
// forecast is later, and a *[reserve.SizeError] if no option ever grants it.
func (q *Queue) Enter(ctx context.Context, p *Place, maxWait time.Duration) (err error) {
	if err := q.prepare(ctx, p); err != nil {
		return err
	}
	q.poll()
	look, err := q.join(p, maxWait)
	if err != nil {
		return err
	}
	entered := false
	defer func() {
		if !entered { // also where the user's clock panics
			err = q.refuse(p, err)
		}
	}()
	if look {
		if err = q.look(ctx, p); err != nil {
			return err
		}
	}
	again, err := q.tooLate(p, maxWait)
	if again {
		err = q.certainlyTooLate(ctx, p, maxWait)
	}
	entered = err == nil
	return err
}

// join puts a place into the order, and reports whether to look.
func (q *Queue) join(p *Place, maxWait time.Duration) (look bool, err error) {
	now := q.lock()
	defer q.mu.Unlock()
	if err := q.push(p, maxWait); err != nil {
		return false, err
	}
	q.waiting.Add(1)
	hopeless, _ := q.hopeless(now)
	return hopeless != nil || q.first() == p, nil
}

// Refusal returns the error that Enter would return, and takes nothing.
func (q *Queue) Refusal(ctx context.Context, p *Place, maxWait time.Duration) error {
	if err := q.prepare(ctx, p); err != nil {
		return err
	}
	q.lock()
	defer q.mu.Unlock()
	if err := q.push(p, maxWait); err != nil {
		return err
	}
	defer q.order.Remove(&p.entry)
	if wait := q.forecast(p); add(p.begin, wait) > p.latest {
		return p.late(p.begin, wait)
	}
	return nil
}

func (q *Queue) prepare(ctx context.Context, p *Place) error {
	if err := done.Cause(ctx); err != nil {
		return err
	}
	p.latest, p.byDeadline = q.clock.Deadline(ctx), true
	p.queue, p.ctx = q, ctx
	p.state, p.hold, p.err, p.settled, p.resized, p.fails = waiting, nil, nil, false, 0, 0
	p.asks = nil
	if q.blocks && ctx.Done() != nil && p.Permits > 1 {
		return p.fitsWithin(ctx)
	}
	return p.fits()
}

// fitsWithin is fits, where to ask a limit may block.
func (p *Place) fitsWithin(ctx context.Context) error {
	answer := make(chan error, 1)
	go func() {
		defer func() {
			if value := recover(); value != nil {
				answer <- caught(value)
			}
		}()
		answer <- p.fits()
	}()
	select {
	case err := <-answer:
		return thrown(err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (q *Queue) push(p *Place, maxWait time.Duration) error {
	p.begin = q.seen
	p.at = p.begin
	if at := add(p.begin, max(0, maxWait)); maxWait < reserve.Forever && at <= p.latest {
		p.latest, p.byDeadline = at, false
	}
	p.entry = order.Entry[Place]{Of: p, Permits: p.Permits, Asks: p.asked()}
	if !q.order.Push(&p.entry, p.Class, p.Tenant, p.Weight, p.Rank) {
		return q.set.Full(p.Class)
	}
	return nil
}

// fits returns the error of a place that no option ever grants, or nil.
func (p *Place) fits() (err error) {
	for i, o := range p.Options {
		if p.closed(i) {
			continue
		}
		var size error
		for j := 0; j < len(o.Limits) && size == nil; j++ {
			size = o.Limits[j].tooLarge(p)
		}
		if size == nil {
			return nil
		}
		if tooMany(size) > tooMany(err) {
			err = size
		}
	}
	return err
}

func (q *Queue) refuse(p *Place, why error) error {
	back, err := q.takeOut(p, why)
	q.left(back, false)
	return err
}

func (q *Queue) takeOut(p *Place, why error) (parting, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.state >= granted {
		return parting{}, p.failure()
	}
	return p.parting(q.leave(p, why, true)), why
}

// certainlyTooLate is tooLate while no place is being bound.
func (q *Queue) certainlyTooLate(ctx context.Context, p *Place, maxWait time.Duration) error {
	err := q.look(ctx, p)
	if err == nil {
		err = q.binding.lockWithin(ctx)
	}
	if err != nil {
		return err
	}
	defer q.binding.unlock()
	_, err = q.tooLate(p, maxWait)
	return err
}

// tooLate returns the error of a place whose forecast is too late, or why it is over, or nil. Again: another is being
// bound, which counts in the queue and maybe at its limit, too.
func (q *Queue) tooLate(p *Place, maxWait time.Duration) (again bool, err error) {
	if done, err := p.decided(); done {
		return false, err
	}
	now := q.lock()
	defer q.mu.Unlock()
	var wait time.Duration
	switch {
	case p.state >= granted:
		return false, p.failure()
	case p.state == bound:
		if wait = p.hold.delay(); wait == unknown {
			wait = 1
		}
	default:
		wait = max(1, q.forecast(p))
	}
	known := maxWait <= 0 || p.state != binding && q.leaving == 0
	if known && add(now, wait) > p.latest || wait > 0 && maxWait <= 0 {
		return q.asking != nil, p.late(now, wait)
	}
	q.lapses(p)
	q.arm(now)
	return false, nil
}

// decided reports whether a place is over, or has no deadline, and why it is over.
func (p *Place) decided() (yes bool, err error) {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	if p.state >= granted {
		return true, p.failure()
	}
	return p.latest == never, nil
}

func (p *Place) late(now int64, wait time.Duration) error { return p.lateAt("", now, wait) }

func (p *Place) lateAt(name string, now int64, wait time.Duration) error {
	wait = add(time.Duration(now-p.begin), wait)
	err := &reserve.WaitError{Wait: wait, MaxWait: time.Duration(p.latest - p.begin), Limit: name}
	if p.byDeadline {
		err.Cause = context.DeadlineExceeded
	}
	return err
}
