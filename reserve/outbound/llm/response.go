package llm

import (
	"context"
	"net/http"

	"github.com/nextfree/pace/reserve/outbound/internal/bodies"
)

// reading finds the usage in a response's body as the caller reads it.
type reading struct {
	bodies.Watched
	counter counter
	body    body // nil: nothing is read
	of      reader
}

type reader interface {
	finish(d *reading)
	leave() // follows finish, under no lock
}

func (d *reading) begin(r *http.Response, t *Transport, of reader) {
	d.of = of
	d.counter.begin(t.ignored)
	d.counter.all = t.cacheReads
	if d.counter.header(r.Header); !d.counter.count.known {
		d.body = bodyOf(r, &d.counter)
	}
	r.Body = d.Watch(context.Background(), r.Body, d)
}

func (d *reading) Show(piece []byte) {
	if d.body != nil {
		d.body.write(piece)
	}
}

func (d *reading) Last() {
	if d.body != nil {
		d.body.end()
	}
	d.of.finish(d)
}

func (d *reading) Over() { d.of.leave() }

type usage struct {
	call *call
	kind kind
}

func (u *usage) Write(piece []byte) (int, error) { return len(piece), nil }

func (u *usage) Used() (permits int, known bool) {
	u.call.reading.End()
	return u.kind.of(u.call.spent), true
}

func (c *call) finish(d *reading) {
	t, n, guess, unsaid := c.account.of, d.counter.count, c.class.guess(&c.prompt), d.counter.unsaid()
	switch {
	case n.known:
		n.output += unsaid
		c.class.told(&c.prompt, n)
	case d.counter.ending != well: // it put out what came of it, and no more
		if n.output = unsaid; d.counter.seen {
			n.input = guess.input
		}
	case d.counter.later:
		n = guess
		t.await(c, d.counter.id, guess)
	default:
		n = guess
		t.ignored.add(&t.ignored.Missing)
		c.class.tellsNone()
		if d.counter.seen {
			n.output = unsaid
			if c.most {
				n.output = min(n.output, c.output)
			}
		}
	}
	if d.counter.ending == refusal {
		c.account.stop(t.clock.Now().Add(max(firstRest, d.counter.after)))
	}
	c.spent = n
}
