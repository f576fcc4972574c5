package llm

import (
	"io"
	"net/http"
	"sync"

	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/outbound/internal/bodies"
)

// reading finds out what one response used, for all limits of the call.
type reading struct {
	call     *call
	response *http.Response
	leader   kind // the limit whose view reads the body; the others look at what it found
	body     body // nil: nothing is read
	counter  counter
	decided  bool // what was used is known without the body
	views    [kinds]view
	ended    func(*reading) // in place of what ends a call's; nil: it is one
}

func newReading(c *call, leader kind, r *http.Response) *reading {
	d := &c.one
	if c.reading != nil {
		d = new(reading)
	}
	d.call, d.response, d.leader = c, r, leader
	d.counter.begin(c.account.of.ignored)
	d.counter.all = c.account.of.cacheReads
	switch {
	case r.StatusCode >= 500:
		d.counter.count = c.failed()
		d.decided = true
	case r.StatusCode >= 400: // the provider did not do it
		d.decided = true
	default:
		if d.counter.count = c.account.countOf(r); !d.counter.count.known {
			d.body = bodyOf(r, &d.counter)
		}
	}
	d.counter.count.known = d.counter.count.known || d.decided
	return d
}

func (a *account) countOf(r *http.Response) (n count) {
	names := &a.of.preset.counts
	if names[0] == "" {
		return n
	}
	input, output := r.Header.Get(names[0]), r.Header.Get(names[1])
	if input == "" || output == "" {
		return n
	}
	in, bad := tokensOf([]byte(input))
	out, bad2 := tokensOf([]byte(output))
	if bad = max(bad, bad2); bad != 0 {
		a.of.ignored.add(bad)
		return n
	}
	return count{in, out, true}
}

func (d *reading) of(k kind) outbound.Usage {
	d.views[k] = view{d, k}
	return &d.views[k]
}

type view struct {
	reading *reading
	kind    kind
}

func (v *view) Write(piece []byte) (int, error) {
	if d := v.reading; d.leader == v.kind && d.body != nil {
		d.body.write(piece)
	}
	return len(piece), nil
}

func (v *view) Used() (permits int, known bool) {
	d := v.reading
	if d.leader == v.kind {
		d.end()
	}
	return v.kind.of(d.counter.count.input, d.counter.count.output), d.call.account.of.settles
}

func (d *reading) end() {
	if d.body != nil {
		d.body.end()
	}
	if d.ended != nil {
		d.ended(d)
		return
	}
	c, n := d.call, &d.counter.count
	switch {
	case d.decided:
	case d.counter.ending != well && !n.known: // it put out what came of it, and no more
		n.input, _ = c.class.guess(&c.prompt)
		if n.output = d.counter.unsaid(); !d.counter.seen {
			n.input = 0
		}
	case n.known:
		n.output = sum(n.output, d.counter.unsaid())
		c.class.told(&c.prompt, *n)
	case d.counter.later:
		c.account.of.await(c, d.counter.id)
		n.input, n.output = c.class.guess(&c.prompt)
	default:
		c.account.of.ignored.add(missing)
		c.class.tellsNone()
		n.input, n.output = c.class.guess(&c.prompt)
		if d.counter.seen && !c.reasons {
			n.output = d.counter.unsaid()
			if c.most {
				n.output = min(n.output, c.output)
			}
		}
	}
	if d.counter.ending == refusal {
		c.stopped()
	}
	c.usage = Usage{Input: sum(n.input, d.counter.reads), CachedInput: d.counter.cached, Output: n.output}
	c.leave()
}

// metered is a body that no limit of tokens reads.
type metered struct {
	io.ReadCloser
	reading *reading
	once    sync.Once
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	if m.reading.body != nil {
		m.reading.body.write(p[:n])
	}
	if err != nil {
		m.once.Do(m.reading.end)
	}
	return n, err
}

func (m *metered) Close() error {
	defer m.once.Do(m.reading.end)
	return m.ReadCloser.Close()
}

// meter has the call last as long as its response, which is read for its usage if wanted.
func (c *call) meter(r *http.Response, wanted bool) {
	if c.reading == nil || c.reading.response != r {
		c.reading = newReading(c, requests, r)
		if !wanted {
			c.reading.body, c.reading.decided = nil, true
		}
		r.Body = bodies.Instead(r.Body, &metered{ReadCloser: r.Body, reading: c.reading})
	}
}
