package outbound

import (
	"net/http"
	"time"
)

// A call is a request on its way through the transport. Each attempt passes these stages.
type call struct {
	t       *Transport
	caller  *http.Request // as it came
	request *http.Request // for the caller's functions; remembers its body

	*way                 // of this attempt
	ways   []way         // one for each upstream, or for the only server
	states []*limitState // each limit and key once

	turn          // admit.go
	sending       // this file
	tries   tries // verdict.go, retry.go

	memory struct {
		ways    [1]way
		charges [few]charge
		seats   [1]charge
		states  [few]*limitState
	}
}

// few is how many limits a call may have without an allocation.
const few = 2

type sending struct {
	phase    phase
	unsent   bool          // the base transport does not have the request yet
	outgoing *http.Request // of this attempt: a retry has a body of its own
	expires  time.Time     // when what it has signed must be sent; zero: whenever
	backoff  time.Duration // since heard; 0: until it is its turn
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
		t: t, caller: r, request: withContent(r),
		sending: sending{outgoing: r, unsent: true, expires: t.expires(r, t.watch)},
		tries:   tries{number: 1, repeatable: repeatable(r)},
	}
	c.ways, c.states = c.memory.ways[:], c.memory.states[:0]
	c.way = &c.ways[0]
	c.charges, c.seats = c.memory.charges[:0], c.memory.seats[:0]
	return c
}

func (c *call) free() bool { return c.t.upstreams == nil && len(c.charges) == 0 && len(c.seats) == 0 }
