package shared

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A PipelineScripter is a [Scripter] that can send many calls at once, for [Keyed].
type PipelineScripter interface {
	Scripter
	// EvalEach runs the script on each key, as Eval does, at most once each, and puts the results into the calls. It
	// must return when the context ends.
	EvalEach(ctx context.Context, script *Script, calls []*Call)
}

type Call struct {
	Key    string
	Arg    []byte
	Answer []byte
	Err    error // if there is no answer
}

// A gatherer sends calls for several keys together. Calls that arrive during batches share the next, which the first
// of them sends.
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

type batchedCall struct {
	Call
	until time.Time
	leads bool          // it is to take others with it, if it is not done
	wake  chan struct{} // closed when it leads or is done
}

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
	// The caller may leave before its batch is back, and owns arg.
	call := Call{Key: key, Arg: slices.Clone(arg), Err: errAborted}
	e := &batchedCall{Call: call, until: until, wake: make(chan struct{})}
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

func (g *gatherer) leave(e *batchedCall) (leads bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, e); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	return e.leads
}

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

// land lets the caller with the most time lead the next batch.
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
