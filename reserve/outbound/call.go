package outbound

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/queue"
	"github.com/nextfree/pace/reserve/internal/queue/share"
)

// A call is a request on its way through the transport, with all of its attempts. It holds what must be
// undone if the call ends early: a body that was not sent, a place in flight, a response, a probe.
type call struct {
	t       *Transport
	request *http.Request
	ctx     context.Context
	keys    any                    // of all limits: a keySet
	charges []charge               // what it asks, and what it has got when it goes
	named   []charge               // the charges that its response concerns, if it names limits that the call was not paced by
	seats   []seat                 // its places in flight
	gates   []*reserve.Reservation // what else it holds until its response comes: probes

	own     int  // the number of charges to limits that the caller gave; the learned ones come behind
	ownKeys any  // keys, of these charges
	planned plan // by which the learned limits were chosen

	phase     phase
	attempt   attempt
	outgoing  *http.Request  // the request of this attempt: a retry has a body of its own
	resume    time.Time      // this attempt must not go before; zero: when it is its turn
	begin     time.Time      // of the wait for this attempt
	sent      time.Time      // when this attempt was let go
	heard     time.Time      // when its response came
	unsent    io.Closer      // the body of a request that the base transport does not have yet
	response  *http.Response // not yet the caller's
	delivered bool           // the response is the caller's, whose closing it ends the call

	line   *line
	first  share.Entry  // in the line
	place  *queue.Place // in the line: of first, or of another entry if it has asked before
	asked  bool
	rank   queue.Rank // of all of its attempts
	held   int        // the number of its limits before that of its class
	only   [1]queue.Option
	limits [few]queue.Limit
	room   [few]reserve.Reservation

	// If there are classes:
	dearest   int                    // the charge at which the call costs most
	classHeld []*reserve.Reservation // at the limit of its class

	// If there are upstreams:
	upstream  *upstream // of this attempt
	sticky    string    // the request's key: the upstream that served it last gets it, if that costs nothing
	member    int       // its number
	refusedBy []bool    // by number: they have refused it, or failed to serve it
	failedAt  []failedAt

	states []*limitState // of the limits that the call uses

	few       [few]charge
	fewStates [few]*limitState
}

// A phase is how far an attempt has come.
type phase uint8

const (
	idle    phase = iota // it has nothing, or what it has is settled
	granted              // it has its permits, and is not sent
	out                  // it is sent, and not settled
)

// keys is a limit and one of its keys.
type keys struct{ limit, key any }

// A keySet is the set of a call's keys, as a linked list that can be compared: the last key, and the others.
type keySet struct {
	limit       *limit
	key, others any
}

func (t *Transport) newCall(r *http.Request) *call {
	return &call{
		t: t, request: withContent(r), outgoing: r, ctx: r.Context(),
		attempt: attempt{number: 1, repeatable: repeatable(r)},
	}
}

// prepare finds the limits of a request, and what it costs.
func (c *call) prepare() error {
	t, r := c.t, c.request
	for i := range t.inFlight {
		if f := t.inFlight[i]; f.cost(r) > 0 {
			c.seats = append(c.seats, seat{of: f, key: f.key(r)})
			c.keys = keySet{nil, keys{f, c.seats[len(c.seats)-1].key}, c.keys} // a line of its own: a full host stops no other
		}
	}
	c.charges = c.few[:0]
	for i := range t.limits {
		l := &t.limits[i]
		n := l.cost(r)
		if n < 1 && l.upstream {
			n = 1 // it has to go to one of them
		}
		if n < 1 {
			continue
		}
		key, by := l.scope(r)
		if isnil.Value(by) && !l.upstream {
			return valueError("the limiter of "+fmt.Sprint(key), nil, "a Reserver")
		}
		c.charge(l, key, by, n)
	}
	c.own, c.ownKeys = len(c.charges), c.keys
	c.plan()
	t.upstreams.choose(c)
	return nil
}

// free reports whether nothing holds the call back.
func (c *call) free() bool { return len(c.charges) == 0 && len(c.seats) == 0 }

// send sends an attempt. If there is no response the request may still have reached the server, so it
// has cost its permits.
func (c *call) send() (err error) {
	c.goes()
	c.unsent, c.phase = nil, out
	c.count(1)
	defer c.count(-1)
	c.response, err = c.t.base.RoundTrip(c.outgoing)
	if err == nil && c.response == nil {
		err = valueError(fmt.Sprintf("the response of %T", c.t.base), nil, "a response or an error")
	}
	if err == nil && c.response.Body == nil {
		c.response.Body = http.NoBody
	}
	if err == nil {
		c.answer(c.response)
	}
	return err
}

// goes tells that an attempt goes out now.
func (c *call) goes() {
	waited := c.sent.Sub(c.begin)
	c.t.log.waited(c.sent, c.request, waited)
	c.t.hooks.waited(c.request, waited)
}

// deliver returns the response to the caller, whose closing it ends the call if that has a place in flight.
func (c *call) deliver() *http.Response {
	response := c.response
	c.response = nil
	if len(c.seats) > 0 {
		c.delivered = true
		response.Body = placed(response.Body, c)
	}
	return response
}

// end is the only way out of an attempt, and of the call: after an error, before another attempt, when the caller has
// closed the response, and after a panic of the base transport, a hook, or a function of the caller's. What the attempt
// has not come to, end undoes. The second time it does nothing.
func (c *call) end() {
	phase := c.phase
	c.phase = idle
	defer c.leave()
	defer c.endProbes()
	defer c.closeBodies()
	switch phase {
	case granted:
		c.giveBack()
	case out:
		for i := range c.charges {
			c.lose(&c.charges[i])
		}
	}
}

// leave gives the places in flight back.
func (c *call) leave() {
	for i := range c.seats {
		c.seats[i].leave()
	}
}

// endProbes ends the call's probes; the next call probes, if that is still needed.
func (c *call) endProbes() {
	for _, held := range c.gates {
		held.Cancel()
	}
	c.gates = nil
}

// closeBodies closes a request's body that was not sent, and a response's that the caller does not get.
func (c *call) closeBodies() {
	if c.unsent != nil {
		c.unsent.Close()
		c.unsent = nil
	}
	if c.response != nil {
		c.response.Body.Close()
		c.response = nil
	}
}

// refuse tells the hooks that a request can't be sent.
func (c *call) refuse(err error) error {
	c.t.hooks.refused(c.request, err)
	return err
}
