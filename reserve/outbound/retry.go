package outbound

import (
	"context"
	"io"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/nextfree/pace/reserve/outbound/internal/bodies"
)

// again prepares another attempt, after a time or, at 0, when it is its turn. False: there can be none.
func (c *call) again(after time.Duration) bool {
	next, ok := rewind(c.request)
	if !ok {
		return false
	}
	if c.resume = (time.Time{}); after > 0 {
		c.resume = c.attempt.heard.Add(after)
	}
	if c.t.upstreams == nil {
		c.plan(&c.ways[0])
	}
	if !c.mayWait() || !c.t.budget.retry() {
		bodies.Close(next)
		return false
	}
	if r := c.attempt.response; r != nil {
		drain(r.Body)
		c.attempt.response = nil
	}
	c.attempt.end()
	c.attempt.outgoing, c.attempt.unsent = next, true
	c.tries.number++
	c.tries.torn = false
	return true
}

func (c *call) mayWait() bool {
	ctx, end := c.waiting()
	defer end()
	if c.resume.IsZero() {
		l, err := c.ask()
		if err != nil {
			return false
		}
		defer c.t.lines.leave(l)
		return l.Refusal(ctx, c.place, c.t.maxWait) == nil
	}
	deadline, hurried := ctx.Deadline()
	return ctx.Err() == nil && c.resume.Sub(c.t.now()) <= c.t.maxWait && !(hurried && c.resume.After(deadline))
}

func (c *call) backOff(ctx context.Context) error {
	if c.resume.IsZero() {
		return nil
	}
	c.t.waiting.Add(1)
	defer c.t.waiting.Add(-1)
	timer := c.t.watch.NewTimer(c.resume.Sub(c.t.now()))
	defer timer.Stop()
	select {
	case <-timer.Chan():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// repeatable reports, as net/http does, whether a request is idempotent (RFC 9110, 9.2.2) or has an idempotency key.
func repeatable(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return r.Header["Idempotency-Key"] != nil || r.Header["X-Idempotency-Key"] != nil
}

func rewind(r *http.Request) (*http.Request, bool) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, true
	}
	if r.GetBody == nil {
		return nil, false
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, false
	}
	again := r.WithContext(r.Context())
	again.Body = body
	return again, true
}

// drain reads at most this much, for this long: more would cost more than a new connection.
const (
	maxDrain     = 64 << 10
	maxDrainTime = 500 * time.Millisecond
)

// drain reads the rest of a refusal, so that its connection can be reused.
func drain(body io.ReadCloser) {
	slow := time.AfterFunc(maxDrainTime, func() { body.Close() })
	defer slow.Stop()
	io.CopyN(io.Discard, body, maxDrain+1)
	body.Close()
}

type budget struct {
	share float64

	mu   sync.Mutex
	left float64
}

const (
	firstBudget = 10  // for a program's first requests
	fullBudget  = 100 // so that a good day does not pay for a storm
)

func newBudget(share float64) *budget { return &budget{share: share, left: firstBudget} }

func (b *budget) request() {
	if b != nil {
		b.take(-b.share)
	}
}

func (b *budget) retry() bool { return b == nil || b.take(1) }

func (b *budget) take(n float64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left < n {
		return false
	}
	b.left = math.Min(b.left-n, fullBudget)
	return true
}
