package llm

import (
	"context"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
	"github.com/nextfree/pace/reserve/outbound/internal/health"
)

// A door stands behind the queue of calls to several deployments, and is a [reserve.Reserver]. It lets the first call
// through as soon as one of its deployments has room. It takes no permits: the deployment's transport charges the call
// at once, and no other call gets through to that deployment before that has happened.
type door struct {
	members []*member
	clock   clockwork.Clock // nil: the real one
	kicked  chan struct{}   // something has changed: the call that waits looks again

	mu     sync.Mutex
	served uint64
}

// A member is a deployment with its transport.
type member struct {
	*Transport
	Deployment
	health health.Health

	// Guarded by the door's lock.
	busy  bool      // a call that has got through is not charged yet
	rests time.Time // it gets no call before
	last  uint64
}

// kick has the call that waits look again. It may be called under any lock.
func (d *door) kick() {
	select {
	case d.kicked <- struct{}{}:
	default:
	}
}

// Rate returns the tokens a second of all deployments together, by which forecasts are made; 0: one is not known.
func (d *door) Rate() (sum float64) {
	for _, m := range d.members {
		n := m.Limits.TokensPerMinute
		if n == 0 {
			n = m.Limits.InputTokensPerMinute
		}
		if n == 0 {
			return 0
		}
		sum += float64(n) / 60
	}
	return sum
}

// wouldWait returns how long the call would wait for its deployment's limits, with so many tokens more; and whether it
// fits into them at all.
func (c *call) wouldWait(more int) (longest time.Duration, fits bool) {
	fits = true
	for k := range kinds {
		n := c.price(k)
		if n < 1 {
			continue
		}
		by := c.account.limiter(k)
		if by == nil { // the user's: it is asked when the call has got through
			continue
		}
		if k.isTokens() {
			n = sum(n, more)
		}
		if c := (*engine.Limiter)(by).Outlook().Capacity; c >= 1 && float64(n) > c {
			n, fits = int(c), false
		}
		d, err := by.Peek(n)
		if err != nil {
			d, fits = reserve.Forever, false
		}
		longest = max(longest, d)
	}
	return longest, fits
}

// take lets a call through to a deployment that has room, if there is one; else it returns how long that takes.
func (d *door) take(o *route, more int) (wait time.Duration, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	options := make([]time.Duration, len(o.calls))
	one := false // fits somewhere
	for i, c := range o.calls {
		options[i] = -1
		if c == nil || o.refused[i] {
			continue
		}
		d, fits := c.wouldWait(more)
		if fits && !one { // a call that is larger than a limit goes there only if it is so everywhere
			one = true
			for j := range i {
				options[j] = -1
			}
		}
		if fits || !one {
			options[i] = d
		}
	}
	wait, best := reserve.Forever, -1
	now := d.now()
	for i, w := range options {
		switch m := d.members[i]; {
		case w < 0:
		case m.rests.After(now):
			wait = min(wait, max(w, m.rests.Sub(now)))
		case m.busy: // the call that is there kicks when it is charged, which is soon
			wait = min(wait, max(w, time.Millisecond))
		case w > 0:
			wait = min(wait, w)
		case best < 0 || m.before(d.members[best]):
			best = i
		}
	}
	if best < 0 {
		return wait, false
	}
	d.served++
	m := d.members[best]
	m.busy, m.last = true, d.served
	if hold := m.health.Probe(); hold > 0 {
		m.rests = now.Add(hold) // one call probes it
	}
	o.member, o.through = best, true
	return 0, true
}

// rest keeps calls away from a deployment.
func (d *door) rest(m *member, rest time.Duration) {
	if rest > 0 && len(d.members) > 1 {
		d.mu.Lock()
		m.rests = d.now().Add(rest)
		d.mu.Unlock()
		d.kick()
	}
}

// before reports whether a call that may go to both goes to m.
func (m *member) before(other *member) bool {
	if m.Tier != other.Tier {
		return m.Tier < other.Tier
	}
	return m.last < other.last
}

// charged says that a call that got through has been charged, or has come to an end.
func (o *route) charged() {
	d := o.door
	d.mu.Lock()
	through := o.through
	if o.through = false; through {
		d.members[o.member].busy = false
	}
	d.mu.Unlock()
	if through {
		d.kick()
	}
}

type routeKey struct{}

// ReserveWithin begins a call's turn at the door. The context says which call.
func (d *door) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error) {
	o, ok := ctx.Value(routeKey{}).(*route)
	if !ok {
		return reserve.Reservation{}, &reserve.ValueError{
			Package: "llm", Name: "the context", Value: ctx, Want: "that of a call",
		}
	}
	t := &turn{o: o, n: n, more: max(0, n-o.tokens), stopped: make(chan struct{})}
	if wait := t.look(); wait > 0 && maxWait <= 0 {
		return reserve.Reservation{}, &reserve.WaitError{Wait: wait, MaxWait: maxWait}
	}
	return reserve.NewReservation(t), nil
}

// A turn is a call's time at the door. It is a promise that is kept when the call has got through. A more urgent call
// may take it away until then.
type turn struct {
	o    *route
	n    int
	more int // so many tokens more must be left: it is a trial

	mu      sync.Mutex
	ready   bool
	over    bool
	next    time.Time // when it may be ready
	stopped chan struct{}
}

// least is what a turn that has to wait seems to take at least.
const least = 100 * time.Microsecond

// look has the call try to get through, and returns how long that takes; 0: it is ready, or over.
func (t *turn) look() (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ready || t.over {
		return 0
	}
	if wait, t.ready = t.o.door.take(t.o, t.more); t.ready {
		return 0
	}
	t.next = t.o.door.now().Add(min(wait, 24*time.Hour))
	return max(wait, least)
}

func (t *turn) Permits() int  { return t.n }
func (t *turn) At() time.Time { return t.o.door.now().Add(t.Delay()) }
func (t *turn) Cancel()       { t.Settle(0) }

func (t *turn) Delay() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ready || t.over {
		return 0
	}
	return max(least, t.next.Sub(t.o.door.now()))
}

// Wait waits until the call has got through.
func (t *turn) Wait(ctx context.Context) error {
	d := t.o.door
	for {
		wait := t.look()
		t.mu.Lock()
		ready, over := t.ready, t.over
		t.mu.Unlock()
		if over {
			d.kick() // for the call that has the turn now: this one may have taken what it was to get
			return reserve.ErrCancelled
		}
		if ready {
			return nil
		}
		timer := d.newTimer(min(wait, time.Hour))
		select {
		case <-timer.Chan():
		case <-d.kicked:
		case <-t.stopped:
		case <-ctx.Done():
			timer.Stop()
			d.kick()
			return context.Cause(ctx)
		}
		timer.Stop()
	}
}

// Settle takes the turn away. Once the call is sent the turn is over, and what was used concerns its deployment.
func (t *turn) Settle(actual int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || actual > 0 || t.o.gone.Load() {
		return
	}
	t.over = true
	close(t.stopped)
	if t.ready {
		t.o.charged()
	}
}

func (d *door) now() time.Time {
	if d.clock == nil {
		return time.Now()
	}
	return d.clock.Now()
}

func (d *door) newTimer(wait time.Duration) clockwork.Timer {
	if d.clock == nil {
		return clockwork.NewRealClock().NewTimer(wait)
	}
	return d.clock.NewTimer(wait)
}
