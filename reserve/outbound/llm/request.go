package llm

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/reserve/internal/engine"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// call is one request with all of its attempts, and the context of the request.
type call struct {
	context.Context
	account *account
	class   *class
	prompt
	endpoint endpoint
	file     bool // its body is not text
	asked    bool // the transport asked for the usage of its stream

	before [calls]int // used of each limit when the latest attempt went, it included

	seat seat // of the latest attempt

	waits bool      // it keeps its account's place: it was not sent yet
	sent  time.Time // the latest attempt; zero: none
	left  atomic.Bool
	name  string // of the model, at its deployment
	route *route // its way to one of several deployments; nil: there is one

	key     Key
	usage   Usage
	reading *reading // of the latest response
	one     reading  // the first of them: most calls have no other
}

type callKey struct{}

func (c *call) Value(key any) any {
	if _, ok := key.(callKey); ok {
		return c
	}
	return c.Context.Value(key)
}

func callOf(r *http.Request) *call {
	c, _ := r.Context().Value(callKey{}).(*call) // Value's may be nil, too
	return c
}

func (c *call) price(k kind) int {
	a := c.account
	switch {
	case k == calls:
		if a.isActive(requests) {
			return 0
		}
		return 1
	case !a.isActive(k):
		return 0
	case k == images:
		if !c.endpoint.images {
			return 0
		}
		return max(1, c.choices)
	case !k.isTokens():
		return 1
	case c.file:
		return 0
	}
	input, output := c.input, c.output
	if a.of.settles {
		input, output = c.class.expect(&c.prompt, int(a.flight.out.Load()), a.of.now())
	}
	return max(1, k.of(input, output)) // what it used is charged even where nothing was expected
}

func (c *call) enter() (err error) {
	if err = c.account.flight.enter(c.Context, &c.seat); err != nil {
		return err
	}
	c.depart()
	return nil
}

func (c *call) depart() {
	if c.sent.IsZero() {
		c.settleIn()
	}
	c.passes()
	c.sent = c.account.of.now()
	c.account.look(&c.before)
}

// settleIn ends that the call keeps its account: its charges do from now on.
func (c *call) settleIn() {
	if c.waits {
		c.waits = false
		c.account.of.leave(c.account)
	}
}

func (c *call) used(k kind, r *http.Response) outbound.Usage {
	if !c.account.of.settles && c.account.of.told == nil {
		return nil
	}
	if c.reading == nil || c.reading.response != r {
		c.reading = newReading(c, k, r)
	}
	return c.reading.of(k)
}

func (c *call) lost(k kind) (tokens int, known bool) {
	if c.seat.level == 0 { // it was not sent
		return 0, true
	}
	if !c.account.of.settles {
		return 0, false
	}
	n := c.failed()
	c.usage = Usage{Input: n.input, Output: n.output}
	return k.of(n.input, n.output), true
}

func (c *call) failed() (n count) {
	if !c.account.of.refunds {
		n.input, n.output = c.class.guess(&c.prompt)
	}
	return n
}

func (c *call) answered(r *http.Response) {
	a := c.account
	if r.StatusCode < 400 {
		a.flight.accept(c.sent, c.seat.level)
		return
	}
	now := a.of.now()
	if said := reply.Read(r, now, reply.Dialects); said.Refused && !said.Final && !said.Told && len(said.Limits) == 0 {
		if rest := a.flight.refuse(c.sent, now, c.seat.level); rest > 0 {
			a.of.after(rest, a.flight.bound.Load().open)
		}
	}
	c.account.flight.leave(&c.seat)
	if r.StatusCode == http.StatusTooManyRequests {
		c.refused()
	}
}

func (c *call) refused() {
	if !c.most && !c.file && c.account.of.settles && c.account.flight.out.Load() > 1 {
		c.class.refused(c.sent, c.account.of.now())
	}
}

func (c *call) leave() {
	if !c.left.CompareAndSwap(false, true) {
		return
	}
	c.account.flight.leave(&c.seat)
	if !c.sent.IsZero() {
		if told := c.account.of.told; told != nil {
			told(c.key, c.usage)
		}
	}
}

// stopped stops the limits for a response that began well and was a refusal.
func (c *call) stopped() {
	for _, k := range []kind{requests, calls} {
		if l := c.account.limiter(k); l != nil {
			(*engine.Limiter)(l).Stop(c.account.of.now().Add(time.Second))
		}
	}
}
