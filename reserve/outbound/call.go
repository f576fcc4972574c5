package outbound

import (
	"fmt"
	"net/http"
	"time"

	"github.com/nextfree/pace/reserve/outbound/internal/bodies"
)

// A call is a request on its way through the transport. Each attempt passes these stages.
type call struct {
	t       *Transport
	caller  *http.Request // as it came
	request *http.Request // for the caller's functions; remembers its body

	*way                 // of this attempt
	ways   []way         // one for each upstream, or for the only server
	named  []charge      // what the response concerns, if it names other limits; nil: charges
	states []*limitState // each limit and key once

	turn            // admit.go
	sending         // this file
	attempt attempt // verdict.go, retry.go

	memory struct {
		ways    [1]way
		charges [few]charge
		seats   [1]charge
		states  [few]*limitState
		rulings [few]ruling
	}
}

// few is how many limits a call may have without an allocation.
const few = 2

type sending struct {
	phase    phase
	outgoing *http.Request // of this attempt: a retry has a body of its own
	unsent   bool          // the base transport does not have it yet
	resume   time.Time     // not sent before; zero: when it is its turn
	begin    time.Time     // of the wait
	sent     time.Time
	heard    time.Time
	response *http.Response // not yet the caller's
}

type phase uint8

const (
	idle    phase = iota // without permits, or settled
	granted              // with permits, not sent
	out                  // sent, not settled
)

func (t *Transport) newCall(r *http.Request) *call {
	c := &call{
		t: t, caller: r, request: withContent(r), sending: sending{outgoing: r, unsent: true},
		attempt: attempt{number: 1, repeatable: repeatable(r)},
	}
	c.ways, c.states = c.memory.ways[:], c.memory.states[:0]
	c.way = &c.ways[0]
	c.charges, c.seats = c.memory.charges[:0], c.memory.seats[:0]
	return c
}

func (c *call) free() bool { return c.t.upstreams == nil && len(c.charges) == 0 && len(c.seats) == 0 }

func (c *call) exchange() (v verdict, err error) {
	if err = c.send(); err != nil {
		c.end() // before it is planned anew
		return v, err
	}
	return c.obey(), nil
}

func (c *call) send() (err error) {
	c.goes()
	defer c.count(-1)
	c.response, err = c.t.base.RoundTrip(c.outgoing)
	switch {
	case err != nil:
		return err
	case c.response == nil:
		return valueError(fmt.Sprintf("the response of %T", c.t.base), nil, "a response or an error")
	case c.response.Body == nil:
		c.response.Body = http.NoBody
	}
	c.answer(c.response)
	return nil
}

func (c *call) goes() {
	waited := c.sent.Sub(c.begin)
	c.t.log.waited(c.sent, c.request, waited)
	if hook := c.t.hooks.Waited; hook != nil {
		hook(c.request, waited)
	}
	c.unsent, c.phase = false, out
	c.count(1)
}

// deliver gives the caller the response, with the places in flight until the body is closed.
func (c *call) deliver() *http.Response {
	response := c.response
	c.response = nil
	if len(c.seats) > 0 {
		response.Body = placed(response.Body, c.seats)
		c.seats = nil
	}
	return response
}

// end ends an attempt, also after a panic. It settles an attempt without a response at its cost. A second end does
// nothing.
func (c *call) end() {
	phase := c.phase
	c.phase = idle
	defer leave(c.seats)
	defer c.endProbes()
	defer c.closeBodies()
	switch phase {
	case granted:
		c.giveBack()
	case out:
		for i := range c.charges {
			c.charges[i].Held.End() // of all, before a user's Lost, which may panic
		}
		for i := range c.charges {
			c.lose(&c.charges[i])
		}
	}
}

func (c *call) endProbes() {
	for _, held := range c.gates {
		held.Cancel()
	}
	c.gates = nil
}

func (c *call) closeBodies() {
	if c.unsent {
		c.unsent = false
		bodies.Close(c.outgoing)
	}
	if c.response != nil {
		c.response.Body.Close()
		c.response = nil
	}
}

func (c *call) refuse(err error) error {
	if hook := c.t.hooks.Refused; hook != nil {
		hook(c.request, err)
	}
	return err
}
