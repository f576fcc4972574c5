package outbound

import (
	"container/list"
	"context"
	"math"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/reserve"
)

// tunable is what an adaptive key needs of its limiter; *reserve.Limiter has it.
type tunable interface {
	reserve.Reserver
	pausable
	Rate() float64
	SetRate(permitsPerSecond float64) error
}

// A lane is the requests of one adaptive key, and the rate that is being found for
// them. A change of a limiter's rate does not move the times that it has promised, so a lane keeps its
// queue and has all times promised anew, in the same order.
type lane struct {
	limiter tunable
	clock   clockwork.Clock

	mu      sync.Mutex
	pacer   pacer
	queue   list.List // of *ticket
	probing bool      // somebody finds out what the server says; the others wait
}

// A ticket is a place in a lane's queue.
type ticket struct {
	ctx     context.Context
	by      reserve.Reserver // the lane's limiter, perhaps with others
	permits int
	maxWait time.Duration
	probe   bool
	place   *list.Element
	late    time.Time // when it has waited too long for the probe; zero: never

	// Guarded by the lane.
	promise *reserve.Reservation // nil while nothing is promised
	err     error                // why nothing is
	changed chan struct{}        // closed when promise or err is set, if both were nil
}

// newLane returns a limiter's lane. A nil clock is the real one.
func newLane(l tunable, clock clockwork.Clock) *lane {
	if clock == nil {
		clock = clockwork.NewRealClock()
	}
	return &lane{limiter: l, clock: clock, pacer: newPacer(l.Rate())}
}

// enter reserves for a request, or lets it queue behind the probe.
func (l *lane) enter(ctx context.Context, by reserve.Reserver, permits int, maxWait time.Duration) (*ticket, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if rate := l.limiter.Rate(); rate != l.pacer.rate { // somebody else has set it: to begin anew with
		l.pacer = newPacer(rate)
	}
	t := &ticket{ctx: ctx, by: by, permits: permits, maxWait: maxWait}
	if l.pacer.unknown() && l.probing {
		t.changed = make(chan struct{})
		if maxWait < reserve.Forever {
			t.late = l.clock.Now().Add(maxWait)
		}
		t.place = l.queue.PushBack(t)
		return t, nil
	}
	if t.reserve(maxWait); t.err != nil {
		return nil, t.err
	}
	t.probe = l.pacer.unknown()
	l.probing = t.probe
	t.place = l.queue.PushBack(t)
	return t, nil
}

// promise reserves for a request that is in the queue. What it has waited for the
// probe counts; being promised another time later does not.
func (l *lane) promise(t *ticket) {
	maxWait := reserve.Forever
	if t.changed != nil && !t.late.IsZero() {
		maxWait = t.late.Sub(l.clock.Now())
	}
	t.reserve(maxWait)
}

func (t *ticket) reserve(maxWait time.Duration) {
	promise, err := t.by.ReserveWithin(t.ctx, t.permits, maxWait)
	if t.err = err; err == nil {
		t.promise = &promise
	}
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// wait blocks until the permits may be used, and takes the ticket out of the queue.
func (l *lane) wait(t *ticket) (*reserve.Reservation, error) {
	for {
		l.mu.Lock()
		promise, err, changed := t.promise, t.err, t.changed
		l.mu.Unlock()
		switch {
		case err != nil:
		case promise == nil:
			if err = l.waitForProbe(t, changed); err == nil {
				continue
			}
		default:
			err = promise.Wait(t.ctx)
		}
		if l.leave(t, promise, err) {
			return promise, err
		}
	}
}

// waitForProbe blocks until the ticket is promised a time, or refused one.
func (l *lane) waitForProbe(t *ticket, changed <-chan struct{}) error {
	var late <-chan time.Time
	if !t.late.IsZero() {
		timer := l.clock.NewTimer(t.late.Sub(l.clock.Now()))
		defer timer.Stop()
		late = timer.Chan()
	}
	select {
	case <-changed:
		return nil
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	case <-late: // nobody knows how long it would have been
		return &reserve.WaitError{Wait: reserve.Forever, MaxWait: t.maxWait}
	}
}

// leave takes the ticket out of the queue, unless it was promised another time meanwhile.
func (l *lane) leave(t *ticket, promise *reserve.Reservation, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.promise != promise {
		return false
	}
	l.queue.Remove(t.place)
	if err != nil {
		l.giveUpProbe(t)
	}
	return true
}

// sent counts a request that goes out now.
func (l *lane) sent(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pacer.sent.add(now)
}

// fail says that there was no response.
func (l *lane) fail(t *ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.giveUpProbe(t)
}

// giveUpProbe lets the next in the queue be the probe; or all go, if the rate has become
// known without one.
func (l *lane) giveUpProbe(t *ticket) {
	if !t.probe {
		return
	}
	t.probe, l.probing = false, false
	for e := l.queue.Front(); e != nil; e = e.Next() {
		if next := e.Value.(*ticket); next.promise == nil && next.err == nil {
			if l.promise(next); next.err == nil && l.pacer.unknown() {
				next.probe, l.probing = true, true
				return
			}
		}
	}
}

// heard learns from the response to a request sent at the given time. If it was
// refused, the server wants no more requests until resume. It returns the rates before and after.
func (l *lane) heard(t *ticket, now, sent time.Time, h hints, refused bool, resume time.Time) (from, to float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from = l.pacer.rate
	if h.rate > 0 {
		l.pacer.say(now, sent, h.rate)
	}
	switch {
	case refused:
		l.pacer.refuse(now, sent, resume)
	case h.slow && h.rate == 0:
		l.pacer.slow(now, sent)
	default:
		l.pacer.accept(now)
	}
	to = l.pacer.rate
	if to != from {
		l.retime(to)
	}
	l.giveUpProbe(t) // somebody else's turn, if it is still needed
	return from, to
}

// retime sets the rate, and has all times that have not come yet promised anew.
// They are given back from the last to the first, so that it is as if they had never been.
func (l *lane) retime(rate float64) {
	for e := l.queue.Back(); e != nil; e = e.Prev() {
		if t := e.Value.(*ticket); t.promise != nil && t.promise.Delay() > 0 {
			t.promise.Cancel()
			t.promise = nil
		}
	}
	unlimited := math.IsInf(l.limiter.Rate(), 1)
	l.limiter.SetRate(rate) // fails for no positive number
	if unlimited {
		spill(l.limiter)
	}
	for e := l.queue.Front(); e != nil; e = e.Next() {
		if t := e.Value.(*ticket); t.promise == nil && t.err == nil {
			l.promise(t)
		}
	}
}

// spill empties a limiter that was without limit until now. What it has stored was
// never earned: a second's worth of permits would go at once to a server of which
// little is known. They are reserved, since the limiter may be stopped.
func spill(l tunable) {
	if s, ok := l.(interface{ Stored() float64 }); ok {
		if n := int(min(s.Stored(), math.MaxInt32)); n > 0 {
			l.ReserveWithin(context.Background(), n, reserve.Forever)
		}
	}
}

// restore gives the limiter its own rate back: the lane is forgotten.
func (l *lane) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pacer.rate != l.pacer.ceiling {
		l.pacer = newPacer(l.pacer.ceiling)
		l.limiter.SetRate(l.pacer.rate)
	}
}
