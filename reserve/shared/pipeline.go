package shared

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A PipelineScripter is a [Scripter] that can also send many calls at once. [Keyed] uses it: calls
// for many keys that wait at the same moment go as one pipeline.
type PipelineScripter interface {
	Scripter
	// EvalEach runs the script on each key, as Eval does, at most once each, and puts the results into the calls. It
	// must return when the context ends.
	EvalEach(ctx context.Context, script *Script, calls []*Call)
}

// A Call is one of many for different keys.
type Call struct {
	Key    string
	Arg    []byte
	Answer []byte
	Err    error // if there is no answer
}

// A gatherer is a Scripter that sends calls for several keys together. While batches are on their way, the calls that
// arrive wait, and go together in the next. As in a queue there is no goroutine: the first caller that waits sends
// the batch.
type gatherer struct {
	client  PipelineScripter
	timeout time.Duration

	mu      sync.Mutex
	batches int
	waiting []*batchedCall
}

const (
	// maxBatches keep a server busy while answers travel.
	maxBatches = 2
	// maxBatch bounds how long the first waits for the last: some milliseconds.
	maxBatch = 128
)

// A batchedCall is a call that waits for its batch.
type batchedCall struct {
	Call
	until time.Time
	leads bool          // it is to take others with it, if it is not done
	wake  chan struct{} // closed when it leads or is done
}

// gather returns a client that gathers calls, if the client can send them together.
func gather(c Scripter, timeout time.Duration) Scripter {
	if p, ok := c.(PipelineScripter); ok {
		return &gatherer{client: p, timeout: timeout}
	}
	return c
}

// Eval implements Scripter.
func (g *gatherer) Eval(ctx context.Context, script *Script, key string, arg []byte) ([]byte, error) {
	// A call with little time goes alone: it would fail with the others'.
	until, ok := ctx.Deadline()
	if !ok || time.Until(until) < g.timeout/4 {
		return g.client.Eval(ctx, script, key, arg)
	}
	g.mu.Lock()
	if g.batches < maxBatches {
		g.batches++
		g.mu.Unlock()
		defer g.land(nil)
		return g.client.Eval(ctx, script, key, arg)
	}
	// The caller may leave before its batch is back, and the argument is its own.
	e := &batchedCall{Call: Call{Key: key, Arg: slices.Clone(arg), Err: errAborted}, until: until, wake: make(chan struct{})}
	g.waiting = append(g.waiting, e)
	g.mu.Unlock()
	select {
	case <-e.wake:
	case <-ctx.Done():
		if g.leave(e) {
			g.land(nil)
		}
		return nil, ctx.Err()
	}
	if e.leads {
		g.lead(ctx, script, e)
	}
	return e.Answer, e.Err
}

// leave removes a call from the waiting calls, if it is not on its way. It reports whether the call was to lead.
func (g *gatherer) leave(e *batchedCall) (leads bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, e); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	return e.leads
}

// lead sends the waiting calls together, the leader first.
func (g *gatherer) lead(ctx context.Context, script *Script, leader *batchedCall) {
	g.mu.Lock()
	n := min(len(g.waiting), maxBatch-1)
	batched := append([]*batchedCall{leader}, g.waiting[:n]...)
	g.waiting = slices.Delete(g.waiting, 0, n)
	g.mu.Unlock()
	defer g.land(batched)
	calls := make([]*Call, len(batched))
	for i, e := range batched {
		calls[i] = &e.Call
		if e.until.After(leader.until) {
			leader.until = e.until
		}
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), leader.until)
	defer cancel()
	g.client.EvalEach(ctx, script, calls)
}

// land ends a batch, wakes the callers in it, and lets the next begin. The caller with the most time leads that.
func (g *gatherer) land(batched []*batchedCall) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range batched {
		if !e.leads {
			close(e.wake)
		}
	}
	if len(g.waiting) == 0 {
		g.batches--
		return
	}
	i := 0
	for j, e := range g.waiting {
		if e.until.After(g.waiting[i].until) {
			i = j
		}
	}
	next := g.waiting[i]
	g.waiting = slices.Delete(g.waiting, i, i+1)
	next.leads = true
	close(next.wake)
}
