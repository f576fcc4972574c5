package outbound

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/adapt"
	"github.com/nextfree/pace/reserve/internal/queue"
)

// tunable is what an adaptive key needs of its limiter; *reserve.Limiter has it, and Retime, by
// which what is owed follows the rate.
type tunable interface {
	reserve.Reserver
	pausable
	Rate() float64
	SetRate(permitsPerSecond float64) error
}

// A controller sets the rate of one adaptive limiter to what is found.
type controller struct {
	limiter tunable
	clock   clockwork.Clock

	mu    sync.Mutex
	rate  adapt.Rate
	probe *queue.Places // for calls that come while nothing is known of the rate
}

// newController returns a limiter's controller. A nil clock is the real one.
func newController(l tunable, clock clockwork.Clock) *controller {
	if clock == nil {
		clock = clockwork.NewRealClock()
	}
	return &controller{limiter: l, clock: clock, rate: adapt.New(l.Rate()), probe: queue.NewPlaces(1)}
}

// controllerOf returns a limiter's controller. Keys that share a *reserve.Limiter share it: with
// two, each would take the other's cuts for a new ceiling. Other limiters may be made for each
// request, as keyed's are, so theirs is the key's.
func (t *Transport) controllerOf(l tunable, a *charge) *controller {
	var key any = keys{a.limit, a.key}
	if shared, ok := l.(*reserve.Limiter); ok {
		key = shared
	}
	c, ok := t.controllers.get(key)
	if !ok { // it is made under no lock: it asks for the rate, and thereby perhaps a function of the caller's
		c = t.controllers.getOr(key, newController(l, t.clock))
	}
	c.follow()
	return c
}

// follow begins anew if somebody else has set the limiter's rate.
func (c *controller) follow() {
	rate := c.limiter.Rate()
	c.mu.Lock()
	defer c.mu.Unlock()
	if rate != c.rate.Pace() && rate == c.limiter.Rate() {
		c.rate = adapt.New(rate)
		c.admit()
	}
}

// unknown reports whether nothing is known of the rate.
func (c *controller) unknown() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rate.Unknown()
}

// admit lets one call probe at a time as long as nothing is known of the rate. The controller must be locked.
func (c *controller) admit() {
	if c.rate.Unknown() {
		c.probe.Resize(1)
	} else {
		c.probe.Resize(math.MaxInt)
	}
}

// sent counts a call that goes out now.
func (c *controller) sent(now time.Time, permits int) {
	c.change(func(rate *adapt.Rate) { rate.Sent(now, float64(permits)) })
}

// change has the rate learn something, and the limiter follow. It returns the rates before and
// after.
func (c *controller) change(learn func(*adapt.Rate)) (from, to float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from, pace := c.rate.Now(), c.rate.Pace()
	learn(&c.rate)
	if to := c.rate.Pace(); to != pace {
		c.set(to)
	}
	c.admit()
	return from, c.rate.Now()
}

// set sets the limiter's rate. Its own may have been without limit until now: what it has stored
// then was never earned, and a second's worth of permits would go at once to a server of which
// little is known. They are reserved, since the limiter may be stopped.
func (c *controller) set(rate float64) {
	unlimited := math.IsInf(c.limiter.Rate(), 1)
	c.retime(rate)
	if s, ok := c.limiter.(interface{ Stored() float64 }); ok && unlimited {
		if n := int(min(math.Ceil(s.Stored()), math.MaxInt32)); n > 0 {
			_, _ = c.limiter.ReserveWithin(context.Background(), n, reserve.Forever)
		}
	}
}

// retime changes the limiter's rate, and with it the times of callers that wait.
func (c *controller) retime(rate float64) {
	if r, ok := c.limiter.(interface{ Retime(float64) error }); ok {
		_ = r.Retime(rate) // fails for no positive number
		return
	}
	_ = c.limiter.SetRate(rate)
}

// restore gives the limiter its own rate back: the controller is forgotten.
func (c *controller) restore() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ceiling := c.rate.Ceiling(); c.rate.Pace() != ceiling {
		c.rate = adapt.New(ceiling)
		c.retime(ceiling)
	}
}

// chance reports whether a refusal of a call that was sent at the given time would be one by chance: it
// has nothing to do with the rate, and stops only its own call.
func (c *controller) chance(sent time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rate.Chance(sent)
}

// probes reports whether no rate is known, and a call finds it out.
func (c *controller) probes() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rate.Unknown() && c.probe.Out() > 0
}
