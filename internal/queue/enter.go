package queue

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/reserve"
)

// Enter puts a place into the queue, until maxWait or the context's deadline. It returns a *[reserve.WaitError] if the
// forecast is later, and a *[reserve.SizeError] if no option ever grants it.
func (q *Queue) Enter(ctx context.Context, p *Place, maxWait time.Duration) error {
	if err := q.prepare(ctx, p); err != nil {
		return err
	}
	q.poll()
	q.mu.Lock()
	if err := q.push(p, maxWait); err != nil {
		q.mu.Unlock()
		return err
	}
	q.waiting.Add(1)
	hopeless, _ := q.hopeless(p.begin)
	look := hopeless != nil || q.order.first() == p
	q.mu.Unlock()
	if look {
		if err := q.look(ctx); err != nil {
			return q.refuse(p, err)
		}
	}
	q.mu.Lock()
	why := q.tooLate(p, maxWait)
	if why != nil { // a place that is being bound counts in the queue and at its limit
		q.mu.Unlock()
		_ = q.look(ctx)
		q.mu.Lock()
		why = q.tooLate(p, maxWait)
	}
	if why != nil {
		q.mu.Unlock()
		return q.refuse(p, why)
	}
	defer q.mu.Unlock()
	switch {
	case p.state == over:
		return p.failure()
	case p.state < granted && p.latest < never:
		q.lapses(p)
		q.arm(q.now())
	}
	return nil
}

// Refusal returns the error that Enter would return. It takes nothing.
func (q *Queue) Refusal(ctx context.Context, p *Place, maxWait time.Duration) error {
	if err := q.prepare(ctx, p); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.push(p, maxWait); err != nil {
		return err
	}
	defer q.order.of(p).remove(p)
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
	p.state, p.hold, p.err, p.settled = waiting, nil, nil, false
	return p.fits()
}

func (q *Queue) push(p *Place, maxWait time.Duration) error {
	p.begin = q.now()
	p.at = p.begin
	if at := add(p.begin, max(0, maxWait)); maxWait < reserve.Forever && at <= p.latest {
		p.latest, p.byDeadline = at, false
	}
	if !q.order.push(p) {
		return q.set.Full(p.Class)
	}
	return nil
}

// fits returns the error of a place that no option ever grants, or nil.
func (p *Place) fits() (err error) {
	for i, o := range p.Options {
		if p.Except != nil && p.Except(i) {
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

// refuse takes out a place, unless it has been granted meanwhile.
func (q *Queue) refuse(p *Place, why error) error {
	q.mu.Lock()
	if p.state >= granted {
		defer q.mu.Unlock()
		return p.failure()
	}
	h := q.leave(p, why, true)
	q.mu.Unlock()
	q.left(h)
	return why
}

// tooLate returns the error of a place whose forecast is too late, or nil. The queue's lock is held.
func (q *Queue) tooLate(p *Place, maxWait time.Duration) error {
	var wait time.Duration
	switch {
	case p.state >= granted || p.latest == never:
		return nil
	case p.state == bound:
		if wait = p.hold.delay(); wait == unknown {
			wait = 1
		}
	default:
		wait = q.forecast(p)
	}
	if now := q.now(); add(now, wait) > p.latest || wait > 0 && maxWait <= 0 {
		return p.late(now, wait)
	}
	return nil
}

func (p *Place) late(now int64, wait time.Duration) error {
	err := &reserve.WaitError{Wait: add(time.Duration(now-p.begin), wait), MaxWait: time.Duration(p.latest - p.begin)}
	if p.byDeadline {
		err.Cause = context.DeadlineExceeded
	}
	return err
}
