package shared

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// A queue sends requests to the server in lists. While calls are under way, the requests that arrive wait, and go
// together in the next call. There is no goroutine: the first caller of a list makes the call, and after it wakes the
// first caller that has arrived meanwhile, to make the next.
type queue struct {
	mu      sync.Mutex
	waiting []*request // first come, first served
	calls   int
	order   atomic.Bool // callers wait for permits, so their order matters
}

const (
	// maxCalls at a time keep a server busy while answers travel. Two made as many decisions as four, in four fifths
	// of the server's time, since their lists are longer. Where callers queue for permits it is one: two calls may
	// overtake each other.
	maxCalls = 2
	// maxList bounds how long one script runs: a few hundred microseconds.
	maxList = 256
)

// A request is what one caller wants of the server.
type request struct {
	permits  int   // 0: none
	maxWait  int64 // nanoseconds, from when the server decides
	deadline int64 // on the limiter's clock: ready by then; or never
	answer   int64 // the answer is wanted by then; 0: by the deadline
	refund   *refund
	pause    int64 // nanoseconds; or resume, reset
	touch    bool  // bring the state up to date

	// The answer.
	err     error
	charged bool // although there was no answer the server may have granted it
	granted bool
	wait    int64 // as the server decided
	ready   int64 // on the limiter's clock
	slot    slot
	seen    state // before the requests of the list
	after   state // and after them

	// Guarded by the queue's lock.
	stage stage
	wake  chan struct{} // nil: no caller waits for the answer
}

type stage int

const (
	waits stage = iota
	leads       // its caller is to take a list to the server
	sent
	left // its caller does not wait for the answer any more
	answered
)

const never = int64(1<<63 - 1)

// do gets the request answered, and returns the context's cause if that ends first. An error of the call is in the
// request.
func (q *queue) do(ctx context.Context, r *request, send func(context.Context, []*request) error) error {
	q.mu.Lock()
	q.waiting = append(q.waiting, r)
	if q.calls < q.allowed() {
		q.calls++
		q.lead(ctx, r, send)
		return nil
	}
	r.wake = make(chan struct{}, 1)
	q.mu.Unlock()
	for {
		select {
		case <-r.wake:
			q.mu.Lock()
		case <-ctx.Done():
			q.mu.Lock()
			if r.stage != answered {
				q.leave(ctx, r, send)
				return context.Cause(ctx)
			}
		}
		switch r.stage {
		case leads:
			q.lead(ctx, r, send)
			return nil
		case answered:
			q.mu.Unlock()
			return nil
		}
		q.mu.Unlock() // another caller has taken it along
	}
}

// leave removes a request from the queue, or marks it as left if it is under way. The queue must be locked; leave
// unlocks it.
func (q *queue) leave(ctx context.Context, r *request, send func(context.Context, []*request) error) {
	was := r.stage
	r.stage = left
	if was != sent {
		q.waiting = slices.DeleteFunc(q.waiting, func(other *request) bool { return other == r })
	}
	if was == leads && !q.handOver() {
		q.calls++
		q.lead(ctx, r, send)
		return
	}
	q.mu.Unlock()
}

func (q *queue) allowed() int {
	if q.order.Load() {
		return 1
	}
	return maxCalls
}

// lead makes the call for the first waiting requests, the leader's among them. The queue must be locked; lead unlocks
// it. Permits granted to callers that have left go back with the next list, or in a call of their own.
func (q *queue) lead(ctx context.Context, leader *request, send func(context.Context, []*request) error) {
	for again := true; again; {
		n := min(len(q.waiting), maxList)
		if i := slices.Index(q.waiting, leader); i >= n {
			n = i + 1
		}
		list := slices.Clone(q.waiting[:n])
		q.waiting = slices.Delete(q.waiting, 0, n)
		for _, r := range list {
			if r.stage == leads && r != leader {
				q.calls-- // it need not any more
			}
			r.stage = sent
		}
		q.mu.Unlock()
		again = q.take(ctx, list, send)
	}
	q.mu.Unlock()
}

// take makes the call for a list. It returns with the queue locked, and reports whether the caller is to make another
// call. If the client panics, the queue is as after a call that failed, and unlocked, and the panic goes on.
func (q *queue) take(ctx context.Context, list []*request, send func(context.Context, []*request) error) (again bool) {
	returned, failed := false, true
	defer func() {
		q.mu.Lock()
		q.finishAll(list, failed)
		if again = !q.handOver(); again {
			q.calls++
		}
		if !returned {
			q.mu.Unlock()
		}
	}()
	failed = send(ctx, list) != nil
	returned = true
	return false
}

// finishAll gives the requests of a list their answers. If the call failed, the waiting requests fail
// with it: they have waited for as long as it took, and would not fare better.
func (q *queue) finishAll(list []*request, failed bool) {
	err := errAborted
	for _, r := range list {
		if r.stage == left && r.granted {
			q.waiting = append(q.waiting, &request{deadline: never, refund: &refund{slot: r.slot, permits: r.permits}})
		}
		if failed && r.err != nil {
			err = r.err
		}
		q.finish(r)
	}
	if !failed {
		return
	}
	for _, r := range q.waiting {
		if r.stage == leads {
			q.calls--
		}
		r.err = err
		q.finish(r)
	}
	q.waiting = nil
}

// finish wakes the caller of a request that has its answer.
func (q *queue) finish(r *request) {
	r.stage = answered
	if r.wake != nil {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

// handOver ends a flight and lets others begin, led by the first who waits for an answer. It
// reports false if there are only requests that nobody waits for: then the
// caller is to take them.
func (q *queue) handOver() bool {
	q.calls--
	for _, r := range q.waiting {
		if q.calls >= q.allowed() {
			return true
		}
		if r.wake != nil {
			if r.stage == waits {
				r.stage = leads
				q.calls++
				r.wake <- struct{}{}
			}
			return true
		}
	}
	return len(q.waiting) == 0 || q.calls > 0
}
