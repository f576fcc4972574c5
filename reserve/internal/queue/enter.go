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
	if err := done.Cause(ctx); err != nil {
		return err
	}
	deadline := q.clock.Deadline(ctx)
	p.queue, p.ctx = q, ctx
	if err := p.fits(); err != nil {
		return err
	}
	q.mu.Lock()
	if h := q.bound; h != nil && h.place.sleepers == 0 && h.delay() <= 0 { // the timer may be late
		q.mu.Unlock()
		if err := q.lookFor(ctx); err != nil {
			return err
		}
		q.mu.Lock()
	}
	now, err := q.push(ctx, p, maxWait, deadline)
	if err != nil {
		q.mu.Unlock()
		return err
	}
	q.waiting.Add(1)
	hopeless, _ := q.hopeless(now)
	look := hopeless != nil || q.order.First(now) == p
	q.mu.Unlock()
	if look {
		if err := q.lookFor(ctx); err != nil {
			return q.refuse(p, err)
		}
	}
	return q.admit(ctx, p, maxWait)
}

// Refusal returns the error that Enter would return. It takes nothing.
func (q *Queue) Refusal(ctx context.Context, p *Place, maxWait time.Duration) error {
	if err := done.Cause(ctx); err != nil {
		return err
	}
	deadline := q.clock.Deadline(ctx)
	if err := p.fits(); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now, err := q.push(ctx, p, maxWait, deadline)
	if err != nil {
		return err
	}
	wait := q.forecast(p)
	q.order.Remove(now, p)
	if add(now, wait) > p.latest {
		return p.late(now, wait)
	}
	return nil
}

func (q *Queue) push(ctx context.Context, p *Place, maxWait time.Duration, deadline int64) (now int64, err error) {
	now = q.now()
	p.queue, p.ctx, p.begin, p.at = q, ctx, now, now
	p.latest, p.byDeadline = deadline, true
	if maxWait < reserve.Forever && add(now, max(0, maxWait)) <= deadline {
		p.latest, p.byDeadline = add(now, max(0, maxWait)), false
	}
	p.state, p.hold, p.err, p.settled = waiting, nil, nil, false
	return now, q.order.Push(now, p)
}

func (p *Place) fits() error {
	most := 0
	for i, o := range p.Options {
		if p.Except != nil && p.Except(i) {
			continue
		}
		size := o.tooLarge(p)
		if size == nil {
			return nil
		}
		most = max(most, size.Max)
	}
	if most == 0 {
		return nil
	}
	return &reserve.SizeError{Permits: p.Permits, Max: most}
}

func (o *Option) tooLarge(p *Place) *reserve.SizeError {
	for i := range o.Limits {
		l := &o.Limits[i]
		n := l.permits(p)
		if n == 1 || l.Clip {
			continue
		}
		if _, err := l.wait(n); tooMany(err) > 0 {
			return &reserve.SizeError{Permits: n, Max: tooMany(err)}
		}
	}
	return nil
}

// refuse takes out a place, unless it has been granted meanwhile.
func (q *Queue) refuse(p *Place, why error) error {
	q.mu.Lock()
	switch p.state {
	case granted:
		q.mu.Unlock()
		return nil
	case over:
		q.mu.Unlock()
		return p.failure()
	}
	q.order.Lapsed(q.now(), p)
	h := q.leave(p, why)
	q.mu.Unlock()
	q.gone(h)
	return why
}

// admit refuses a place whose forecast is too late. A place that is being bound counts in the queue and at its limit,
// so then the forecast is made again afterwards.
func (q *Queue) admit(ctx context.Context, p *Place, maxWait time.Duration) error {
	q.mu.Lock()
	why := q.tooLate(p, maxWait)
	if why != nil && q.binds {
		q.mu.Unlock()
		if q.blocks {
			_ = q.lookFor(ctx)
			q.mu.Lock()
			why = q.tooLate(p, maxWait)
		} else {
			q.binding.lock()
			q.mu.Lock()
			why = q.tooLate(p, maxWait)
			q.binding.unlock()
		}
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

// tooLate returns the error of a place whose forecast is too late, or nil. The queue's lock is held.
func (q *Queue) tooLate(p *Place, maxWait time.Duration) error {
	if p.state >= granted {
		return nil
	}
	now := q.now()
	late := func(wait time.Duration) bool { return add(now, wait) > p.latest || wait > 0 && maxWait <= 0 }
	wait := time.Duration(0)
	if p.state == bound {
		if wait = p.hold.delay(); wait == unknown {
			wait = 1
		}
	} else if p.latest < never {
		var exact bool
		if wait, exact = q.atMost(now, p); !exact && (late(wait) || maxWait <= 0) {
			wait = q.forecast(p)
		}
	}
	if late(wait) {
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
