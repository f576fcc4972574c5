package outbound

import (
	"net/http"
	"time"

	"github.com/nextfree/pace/internal/queue"
)

// A call is a request on its way through the transport: what it asks of its limits, and its place in their line. Each
// sending of it is an [attempt].
type call struct {
	t       *Transport
	caller  *http.Request // as it came
	request *http.Request // for the caller's functions; remembers its body
	expires time.Time     // when what it has signed must be sent; zero: whenever

	ways   ways
	states []*limitState // each limit and key once

	place *queue.Place // first, or a new one after the first ask
	rank  queue.Rank

	attempt attempt   // the latest
	tries   tries     // verdict.go, retry.go
	resume  time.Time // the end of its own backoff; zero: when it is its turn

	first  queue.Place
	only   [1]queue.Option
	limits [few]queue.Limit
	memory struct {
		ways    [1]way
		charges [few]charge
		seats   [1]charge
		states  [few]*limitState
	}
}

// few is how many limits a call may have without an allocation.
const few = 2

func (t *Transport) newCall(r *http.Request) *call {
	c := &call{
		t: t, caller: r, request: withContent(r), expires: t.expires(r, t.watch),
		tries: tries{number: 1, repeatable: repeatable(r)},
	}
	c.ways, c.states = c.memory.ways[:], c.memory.states[:0]
	w := &c.ways[0]
	w.charges, w.seats = c.memory.charges[:0], c.memory.seats[:0]
	c.attempt = attempt{t: t, request: c.request, way: w, outgoing: r, unsent: true}
	return c
}

func (c *call) free() bool {
	w := &c.ways[0]
	return c.t.upstreams == nil && len(w.charges) == 0 && len(w.seats) == 0
}

func (c *call) refuse(err error) error {
	if hook := c.t.hooks.Refused; hook != nil {
		hook(c.request, err)
	}
	return err
}

func (c *call) release() {
	for _, s := range c.states {
		s.users.Add(-1)
	}
	c.states = nil
}
