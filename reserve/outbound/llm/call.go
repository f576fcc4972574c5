package llm

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/nextfree/pace/reserve/outbound"
)

// A call is one on its way through the transport, and the context of its request: so the functions
// that are given the request find it.
type call struct {
	context.Context
	account *account
	prompt
	file bool // its body is no text

	sent bool // and counted in account.going
	left atomic.Bool

	// Of the response that is read.
	response *http.Response
	leader   kind // its Usage reads the body; the others look at what it found
	body     body
	counter  counter
	final    bool // what was used is known without the body
	views    [kinds]view
}

type callKey struct{}

func (c *call) Value(key any) any {
	if _, ok := key.(callKey); ok {
		return c
	}
	return c.Context.Value(key)
}

// callOf returns the call of a request; nil: it is none.
func callOf(r *http.Request) *call {
	c, _ := r.Context().Value(callKey{}).(*call)
	return c
}

// price returns what a limit charges the call, by what is known now.
func (c *call) price(k kind) int {
	a := c.account
	if !a.limits[k].active.Load() {
		return 0
	}
	if !k.isTokens() {
		return 1
	}
	if c.file {
		return 0
	}
	input, output := c.input, c.output
	if a.of.settles {
		others := int(a.going.Load())
		input = a.input.correct(input, others)
		if !c.most {
			output = a.output.correct(output, others)
		}
	}
	return max(1, k.of(input, output)) // what it came to is charged even where nothing was expected
}

// used returns what finds out what a response has used of a limit.
func (c *call) used(k kind, r *http.Response) outbound.Usage {
	if !c.account.of.settles || r.StatusCode >= 500 {
		return nil
	}
	if c.response != r {
		c.response, c.leader = r, k
		c.attach(r)
	}
	c.views[k] = view{c, k}
	return &c.views[k]
}

// attach prepares the call to read a response.
func (c *call) attach(r *http.Response) {
	p := c.account.of.preset
	c.counter.begin(p, &c.account.of.ignored)
	if r.StatusCode >= 400 { // the provider did not do it
		c.counter.count.known, c.final = true, true
		return
	}
	if p.counts[0] != "" {
		input, output := r.Header.Get(p.counts[0]), r.Header.Get(p.counts[1])
		if input != "" && output != "" {
			in, bad := tokensOf([]byte(input))
			out, bad2 := tokensOf([]byte(output))
			if bad, bad2 = max(bad, bad2), 0; bad != bad2 {
				c.account.of.ignored.add(bad)
			} else {
				c.counter.count = count{in, out, true}
			}
		}
	}
	c.body = bodyOf(r, &c.counter)
}

// A view is the usage of one limit.
type view struct {
	call *call
	kind kind
}

func (v *view) Write(piece []byte) (int, error) {
	if c := v.call; c.leader == v.kind && c.body != nil {
		c.body.write(piece)
	}
	return len(piece), nil
}

func (v *view) Used() (permits int, known bool) {
	c := v.call
	if c.leader == v.kind {
		c.ended()
	}
	return v.kind.of(c.counter.count.input, c.counter.count.output), c.counter.count.known
}

// ended says that the response has ended: what is known now is all.
func (c *call) ended() {
	if c.body != nil {
		c.body.end()
	}
	a, n := c.account, c.counter.count
	switch {
	case c.final:
	case n.known:
		a.input.learn(c.input, n.input)
		if !c.most {
			a.output.learn(c.output, n.output)
		}
	default:
		a.of.ignored.add(missing)
	}
	c.leave()
}

// leave says, once, that the call is over, as far as its account is concerned.
func (c *call) leave() {
	if !c.left.CompareAndSwap(false, true) {
		return
	}
	if c.sent {
		c.account.going.Add(-1)
	}
	c.account.of.leave(c.account)
}
