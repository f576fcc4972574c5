package outbound

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/fifo"
)

// A call is a request on its way through the transport, with all of its attempts.
type call struct {
	t       *Transport
	request *http.Request
	ctx     context.Context
	number  uint64 // in the order of calls
	set     any    // of keys
	asks    []ask
	limits  []fifo.Limit
	few     [few]ask // of asks
	fewOf   [few]fifo.Limit

	begin time.Time // of the wait for this attempt
	sent  time.Time

	reason   string // by which limit the latest attempt was refused, if the server says so
	refusals int    // in a row, while nothing was accepted
}

// An ask is what a call asks of one limit.
type ask struct {
	limit   *limit
	key     any
	by      reserve.Reserver
	cost    int
	rate    *controller // nil: not adaptive
	probe   bool        // it goes alone, to find out the rate
	reserve *reserve.Reservation
}

// few limits are what most calls have: for so many nothing is allocated apart.
const few = 3

// keys are a key of a limit, and those of a call's other limits.
type keys struct{ first, others any }

// A set is that of a call's keys: the last one, and the others.
type set struct {
	limit       *limit
	key, others any
}

// newCall finds out by which limits a request is paced.
func (t *Transport) newCall(r *http.Request) (*call, error) {
	c := &call{t: t, request: r, ctx: r.Context()}
	c.asks = c.few[:0]
	for i := range t.limits {
		l := &t.limits[i]
		cost := t.before
		if l.cost != nil {
			cost = l.cost
		}
		n := cost(r)
		if n < 1 {
			continue
		}
		key, by := l.scope(r)
		if isnil.Value(by) {
			name := "the limiter of " + fmt.Sprint(key)
			return c, &reserve.ValueError{Package: "outbound", Name: name, Value: nil, Want: "a Reserver"}
		}
		c.asks = append(c.asks, ask{limit: l, key: key, by: by, cost: n})
		c.set = set{l, key, c.set}
	}
	if c.limits = c.fewOf[:0]; len(c.asks) > few {
		c.limits = make([]fifo.Limit, 0, len(c.asks))
	}
	c.limits = c.limits[:len(c.asks)]
	for i := range c.asks {
		a := &c.asks[i]
		c.limits[i] = fifo.Limit{By: a.by, Permits: a.cost}
		if again := a.limit.again; again != nil {
			c.limits[i].Recount = func() int { return again(r) }
		}
		if _, ok := a.by.(pausable); !ok {
			c.limits[i].Gate = t.gateOf(a)
		}
		if l, ok := a.by.(tunable); ok && t.adaptive {
			a.rate = t.controllerOf(l, a)
			c.limits[i].Open = func(ctx context.Context) error { return a.open(c, ctx) }
		}
	}
	c.number = t.calls.Add(1)
	return c, nil
}

// open waits until the call may ask for permits: until something is known of an adaptive rate.
func (a *ask) open(c *call, ctx context.Context) (err error) {
	var late time.Time
	if c.t.maxWait < reserve.Forever {
		late = c.begin.Add(c.t.maxWait)
	}
	a.probe, err = a.rate.open(ctx, late, c.t.maxWait)
	return err
}

// acquire waits until the call may go, and has its permits then.
func (c *call) acquire() error {
	c.begin = c.t.now()
	return c.acquireSince()
}

func (c *call) acquireSince() error {
	held, err := c.t.lines.Acquire(c.ctx, c.set, c.number, c.limits, c.t.maxWait)
	if err != nil {
		c.fail()
		return err
	}
	c.sent = c.t.now()
	for i := range c.asks {
		a := &c.asks[i]
		a.reserve, a.cost = &held[i], c.limits[i].Permits
		if a.limit.used == nil && (a.limit.cost != nil || c.t.after == nil) {
			a.keep()
		}
		if a.rate != nil {
			a.rate.sent(c.sent, a.cost)
		} else {
			c.t.eases.hold(a, c.sent)
		}
	}
	return nil
}

// canRetry reports whether the call may wait for another attempt, not before resume; zero: whenever
// it is its turn.
func (c *call) canRetry(resume time.Time) bool {
	if !resume.IsZero() {
		own := c.t.alone(resume)
		r, err := own.ReserveWithin(c.ctx, 1, c.t.maxWait)
		r.Cancel()
		return err == nil
	}
	return c.t.lines.Outlook(c.ctx, c.set, c.number, c.limits, c.t.maxWait) == nil
}

// acquireAgain is acquire for another attempt.
func (c *call) acquireAgain(resume time.Time) error {
	c.begin = c.t.now()
	if !resume.IsZero() {
		r, err := c.t.alone(resume).ReserveWithin(c.ctx, 1, reserve.Forever)
		if err == nil {
			err = r.Wait(c.ctx)
		}
		if err != nil {
			return err
		}
	}
	return c.acquireSince()
}

// send sends an attempt. If there is no response the request may still have reached the
// server, so it has cost its permits.
func (c *call) send(r *http.Request) (response *http.Response, err error) {
	defer func() {
		if response == nil { // an error, or a panic, be it a hook's
			c.lost()
		}
	}()
	waited := c.sent.Sub(c.begin)
	c.t.log.waited(c.sent, c.request, waited)
	c.t.hooks.waited(c.request, waited)
	return c.t.base.RoundTrip(r)
}

// lost says that there was no response: the call has cost what it was to cost.
func (c *call) lost() {
	for i := range c.asks {
		c.asks[i].keep()
	}
	c.fail()
}

// fail says that nothing was found out: somebody else must find out what there was to find out.
func (c *call) fail() {
	for i := range c.asks {
		if a := &c.asks[i]; a.rate != nil && a.probe {
			a.probe = false
			a.rate.giveUp()
		}
	}
}

// refused tells of a request that can't be sent.
func (c *call) refused(err error) error {
	c.t.hooks.refused(c.request, err)
	return err
}
