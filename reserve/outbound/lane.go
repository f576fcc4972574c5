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

// tunable is what an adaptive key needs of its limiter; *reserve.Limiter has it, and Retime, by
// which those that wait follow the rate. With SetRate alone they keep the times they have.
type tunable interface {
	reserve.Reserver
	pausable
	Rate() float64
	SetRate(permitsPerSecond float64) error
}

// A lane is the requests of one adaptive key, and the rate that is being found for
// them. Requests queue at the limiter; only while nothing is known of the rate one goes alone, as
// the probe, and the others wait here, in their order.
type lane struct {
	limiter tunable
	clock   clockwork.Clock

	mu      sync.Mutex
	pacer   pacer
	probing bool      // somebody finds out what the server says
	behind  list.List // of *ticket: those that wait for that
}

// A ticket is a request of a lane.
type ticket struct {
	ctx     context.Context
	by      reserve.Reserver // the lane's limiter, perhaps with others
	permits int
	maxWait time.Duration
	late    time.Time // when it has waited too long for the probe; zero: never

	// Guarded by the lane.
	probe   bool
	promise *reserve.Reservation // nil while nothing is promised
	err     error                // why nothing is
	told    chan struct{}        // closed when promise or err is set; nil if it has not waited for the probe
	place   *list.Element        // among those behind the probe
}

// newLane returns a limiter's lane. A nil clock is the real one.
func newLane(l tunable, clock clockwork.Clock) *lane {
	if clock == nil {
		clock = clockwork.NewRealClock()
	}
	return &lane{limiter: l, clock: clock, pacer: newPacer(l.Rate())}
}

// enter reserves for a request, or lets it wait behind the probe.
func (l *lane) enter(ctx context.Context, by reserve.Reserver, permits int, maxWait time.Duration) (*ticket, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if rate := l.limiter.Rate(); rate != l.pacer.rate { // somebody else has set it: to begin anew with
		l.pacer = newPacer(rate)
	}
	t := &ticket{ctx: ctx, by: by, permits: permits, maxWait: maxWait}
	if l.pacer.unknown() && l.probing {
		t.told = make(chan struct{})
		if maxWait < reserve.Forever {
			t.late = l.clock.Now().Add(maxWait)
		}
		t.place = l.behind.PushBack(t)
		return t, nil
	}
	if t.reserve(maxWait); t.err != nil {
		return nil, t.err
	}
	t.probe = l.pacer.unknown()
	l.probing = t.probe
	return t, nil
}

func (t *ticket) reserve(maxWait time.Duration) {
	promise, err := t.by.ReserveWithin(t.ctx, t.permits, maxWait)
	if t.err = err; err == nil {
		t.promise = &promise
	}
}

// wait blocks until the permits may be used.
func (l *lane) wait(t *ticket) (*reserve.Reservation, error) {
	err := l.waitForProbe(t)
	if err == nil {
		err = t.promise.Wait(t.ctx)
	}
	if err != nil {
		l.fail(t)
	}
	return t.promise, err
}

// waitForProbe blocks until the ticket is promised a time, or refused one.
func (l *lane) waitForProbe(t *ticket) error {
	if t.told == nil {
		return nil
	}
	var late <-chan time.Time
	if !t.late.IsZero() {
		timer := l.clock.NewTimer(t.late.Sub(l.clock.Now()))
		defer timer.Stop()
		late = timer.Chan()
	}
	var err error
	select {
	case <-t.told:
	case <-t.ctx.Done():
		err = context.Cause(t.ctx)
	case <-late: // nobody knows how long it would have been
		err = &reserve.WaitError{Wait: reserve.Forever, MaxWait: t.maxWait}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.promise != nil || t.err != nil { // told, perhaps just now
		return t.err
	}
	l.behind.Remove(t.place)
	return err
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

// giveUpProbe lets the next of those behind be the probe; or all go, if the rate has become
// known without one. What they have waited for it counts.
func (l *lane) giveUpProbe(t *ticket) {
	if !t.probe {
		return
	}
	t.probe, l.probing = false, false
	for e := l.behind.Front(); e != nil && !l.probing; e = l.behind.Front() {
		next := l.behind.Remove(e).(*ticket)
		maxWait := reserve.Forever
		if !next.late.IsZero() {
			maxWait = next.late.Sub(l.clock.Now())
		}
		next.reserve(maxWait)
		next.probe = next.err == nil && l.pacer.unknown()
		l.probing = next.probe
		close(next.told)
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

// retime sets the rate, for those that wait as well.
func (l *lane) retime(rate float64) {
	unlimited := math.IsInf(l.limiter.Rate(), 1)
	if r, ok := l.limiter.(interface{ Retime(float64) error }); ok {
		r.Retime(rate) // fails for no positive number
	} else {
		l.limiter.SetRate(rate)
	}
	if unlimited {
		spill(l.limiter)
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
