package outbound

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/adapt"
	lim "github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve"
)

// A controller sets a limiter's rate. One that nobody has asked for sets none of the caller's. A window keeps its own:
// a longer one would count calls that the server has forgotten, and let all of a window go at once. Its calls also need
// permits of another limiter, which spaces them.
type controller struct {
	limiter lim.Limit // whose rate is set
	ceiling func() float64
	even    *reserve.Limiter // limiter, beside a window; nil: there is none

	mu    sync.Mutex
	rate  adapt.Rate
	probe *queue.Places // one call at a time while the rate is unknown
	asked bool          // for by an option
	blind bool          // one had no answer: others need not wait to know as much
}

func newController(l lim.Limit, asked bool) *controller {
	c := &controller{limiter: l, ceiling: l.Rate, asked: asked, probe: queue.NewPlaces(1)}
	c.begin(l.Rate())
	return c
}

func (c *controller) begin(ceiling float64) {
	if c.rate = adapt.New(ceiling); !c.asked {
		c.rate.Open()
	}
	c.admit()
}

func (c *controller) spaced(unlimited *reserve.Policy) *controller {
	if !c.asked || isWindow(c.limiter) {
		c.even = unlimited.Limiter()
		c.limiter = lim.Of(c.even)
	}
	return c
}

// longest is the longest window whose calls are spaced. A quota of an hour or a day gets smaller: interactive programs
// would wait minutes for each call.
const longest = 10 * time.Minute

func isWindow(by lim.Limit) bool {
	o, _ := by.Outlook()
	return o.Window && o.Capacity <= longest.Seconds()*o.Rate
}

func (c *controller) follow() {
	rate := c.ceiling()
	c.mu.Lock()
	defer c.mu.Unlock()
	believed := c.rate.Now()
	if c.even != nil {
		believed = c.rate.Ceiling()
	}
	if rate != believed && rate == c.ceiling() {
		if c.begin(rate); c.even != nil {
			c.retime(rate)
		}
	}
}

// is returns what a question about the rate finds.
func (c *controller) is(so func(*adapt.Rate) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return so(&c.rate)
}

func (c *controller) cost() (mean float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rate.Cost()
}

// lost counts a call without an answer.
func (c *controller) lost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blind = true
	c.admit()
}

// admit lets one call probe at a time while the rate is unknown. The controller must be locked.
func (c *controller) admit() {
	if c.rate.Probes() && !c.blind {
		c.probe.Resize(1)
	} else {
		c.probe.Resize(math.MaxInt)
	}
}

// change returns the rates before and after learning.
func (c *controller) change(learn func(*adapt.Rate)) (from, to float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from = c.rate.Now()
	learn(&c.rate)
	if to = c.rate.Now(); to != from {
		c.set(to)
	}
	c.admit()
	return from, to
}

// set sets the limiter's rate, and reserves what it stored while unlimited: else a second's worth would go at once.
func (c *controller) set(rate float64) {
	unlimited := lim.Unlimited(c.limiter)
	c.retime(rate)
	if unlimited {
		o, _ := c.limiter.Outlook()
		if n := int(min(math.Ceil(o.Stored), math.MaxInt32)); n > 0 {
			_, _ = c.limiter.ReserveWithin(context.Background(), n, reserve.Forever)
		}
	}
}

func (c *controller) retime(rate float64) {
	if c.even != nil && rate >= c.rate.Ceiling() {
		rate = math.Inf(1)
	}
	c.limiter.Tune(rate)
}

// restore gives a forgotten controller's limiter its own rate back.
func (c *controller) restore() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ceiling := c.rate.Ceiling(); c.rate.Now() != ceiling {
		c.begin(ceiling)
		c.retime(ceiling)
	}
}

// probes reports whether a call finds out the rate now.
func (c *controller) probes() bool { return c.is((*adapt.Rate).Probes) && c.probe.Out() > 0 }
