package llm

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

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

	left atomic.Bool

	// The latest attempt.
	sent   time.Time  // zero: none
	level  int        // calls of its key that were out then, it included
	before [calls]int // used of each limit then, it included
	spent  count      // what it used, as far as that is known

	large error // it was refused, and is larger than a limit that the refusal told

	name  string // of the model, at its deployment
	route *route // its way to one of several deployments; nil: there is one

	key     Key
	reading reading // of the response, if the usage in it is wanted
	uses    [kinds]usage
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
		if a.limits[requests].size.Load() > 0 && !a.spaced.Load() && !a.stopped() {
			return 0
		}
		return 1
	case !a.isActive(k):
		return 0
	case k == images:
		if !c.endpoint.images {
			return 0
		}
		return c.choices
	case !k.isTokens():
		return 1
	case c.file:
		return 0
	}
	n := count{input: c.input, output: c.output}
	if a.of.settles {
		n = c.class.expect(&c.prompt, a.flight.Out())
	}
	return max(1, k.of(n)) // what it used is charged even where nothing was expected
}

func (c *call) depart() {
	a := c.account
	a.flight.pass(c)
	c.class.first.pass(c)
	c.sent, c.level = a.of.clock.Now(), a.flight.Out()
	c.spent = count{}
	if !a.of.refunds { // as long as there is no answer
		c.spent = c.class.guess(&c.prompt)
	}
	a.look(&c.before)
}

func (c *call) used(k kind, _ *http.Response) outbound.Usage {
	if !c.account.of.settles {
		return nil
	}
	c.uses[k] = usage{c, k}
	return &c.uses[k]
}

// lost is 0 for a call that was not sent.
func (c *call) lost(k kind) (tokens int, known bool) {
	return k.of(c.spent), c.sent.IsZero() || c.account.of.settles
}

func (c *call) answered(r *http.Response) {
	a := c.account
	if r.StatusCode < 500 {
		c.spent = count{}
	}
	if r.StatusCode < 400 {
		a.flight.accept(c)
		c.read(r)
		return
	}
	now := a.of.clock.Now()
	said := reply.Read(r, now)
	if c.large = nil; said.Refused && !said.Final {
		if c.large = c.fits(); c.large != nil {
			r.Header.Set("X-Should-Retry", "false")
		}
		if !said.Told && len(said.Limits) == 0 {
			if rest := a.flight.refuse(c, now, r.StatusCode == http.StatusTooManyRequests); rest > 0 {
				a.stop(now.Add(rest))
			}
		}
	}
}

func (c *call) read(r *http.Response) {
	t := c.account.of
	if t.told != nil || t.settles { // without a limit of tokens, too: a gate may wait for a usage
		c.reading.begin(r, t, c)
	}
	if c.asked {
		hideUsage(r)
	}
}

func (c *call) leave() {
	first := c.left.CompareAndSwap(false, true)
	if told := c.account.of.told; first && told != nil && !c.sent.IsZero() {
		told(c.key, c.spent.usage())
	}
}

// over ends the call, unless the reading of its response will.
func (c *call) over(response *http.Response) {
	c.account.leave()
	if response == nil || !c.reading.IsWatched() {
		c.leave()
	}
}
