package shared

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/saturate"
)

// A queue sends requests in lists. Requests that arrive during calls share the next. The first caller of a list
// makes the call, then wakes the first that has arrived meanwhile.
type queue struct {
	mu      sync.Mutex
	waiting []*request // first come, first served
	calls   int
	order   atomic.Bool // callers wait for permits, so their order matters
}

const (
	// maxCalls keep a server busy while answers travel: two decide as much as four, in four fifths of the server's
	// time. Where callers queue for permits it is one: calls may overtake each other.
	maxCalls = 2
	// maxList bounds how long one script runs: a few hundred microseconds.
	maxList = 256
)

// A request is for permits, for a change of the state, or only for the state.
type request struct {
	purchase         // of no permits: none
	change           // the zero change: none
	by       int64   // the answer is wanted by then, on the limiter's clock
	err      error   // there was no answer
	charged  bool    // although there was none the store may have granted the permits
	after    outlook // the requests of the list
	waiter   waiter  // guarded by the queue's lock
}

type purchase struct {
	permits  int
	maxWait  int64 // nanoseconds, from when the store decides
	deadline int64 // on the limiter's clock: ready by then; or never
	look     bool  // the answer says how long as many would wait

	answer
	ready int64 // on the limiter's clock
}

type change struct {
	refund *refund
	charge charge // of no permits: none
	pause  int64  // nanoseconds; or resume, reset
	terms  *terms // from now on; nil: as before
}

type waiter struct {
	stage stage
	wake  chan struct{} // nil: no caller waits for the answer
}

func buys(permits int, maxWait, deadline int64) *request {
	return &request{purchase: purchase{permits: permits, maxWait: maxWait, deadline: deadline}}
}

func changes(c change) *request { return &request{purchase: purchase{deadline: never}, change: c} }

func looks() *request { return changes(change{}) }

type stage int

const (
	waits stage = iota
	leads       // its caller is to take a list to the server
	sent
	left // its caller does not wait for the answer any more
	answered
)

const never = saturate.Never

// do returns the context's cause if that ends first, and errPatience after the patience. A call's error is in the
// request.
func (q *queue) do(
	ctx context.Context, r *request, patience time.Duration, send func(context.Context, []*request) error,
) error {
	q.mu.Lock()
	q.waiting = append(q.waiting, r)
	if q.calls < q.allowed() {
		q.calls++
		q.lead(ctx, r, send)
		return nil
	}
	r.waiter.wake = make(chan struct{}, 1)
	q.mu.Unlock()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		var over error
		select {
		case <-r.waiter.wake:
		case <-late.C:
			over = errPatience
		case <-ctx.Done():
			over = context.Cause(ctx)
		}
		q.mu.Lock()
		if over != nil && r.waiter.stage != answered {
			q.leave(ctx, r, send)
			return over
		}
		switch r.waiter.stage {
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

// leave removes a waiting request, or marks it as left. It unlocks the queue.
func (q *queue) leave(ctx context.Context, r *request, send func(context.Context, []*request) error) {
	was := r.waiter.stage
	r.waiter.stage = left
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

// lead unlocks the queue. Permits of callers that have left go back with the next list, or in a call of their own.
func (q *queue) lead(ctx context.Context, leader *request, send func(context.Context, []*request) error) {
	for again := true; again; {
		n := min(len(q.waiting), maxList)
		if i := slices.Index(q.waiting, leader); i >= n {
			n = i + 1
		}
		list := slices.Clone(q.waiting[:n])
		q.waiting = slices.Delete(q.waiting, 0, n)
		for _, r := range list {
			if r.waiter.stage == leads && r != leader {
				q.calls-- // it need not any more
			}
			r.waiter.stage = sent
		}
		q.mu.Unlock()
		again = q.take(ctx, list, send)
	}
	q.mu.Unlock()
}

// take returns with the queue locked, and reports whether the caller is to make another call. If the client panics,
// the queue is as after a failed call, and unlocked.
func (q *queue) take(ctx context.Context, list []*request, send func(context.Context, []*request) error) (again bool) {
	returned, failed := false, true
	defer func() {
		q.mu.Lock()
		q.finishList(list, failed)
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

// finishList answers requests. If the call failed, the waiting requests fail too.
func (q *queue) finishList(list []*request, failed bool) {
	err := errAborted
	for _, r := range list {
		if r.waiter.stage == left && r.granted {
			q.waiting = append(q.waiting, changes(change{refund: &refund{slot: r.slot, permits: r.permits}}))
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
		if r.waiter.stage == leads {
			q.calls--
		}
		r.err = err
		q.finish(r)
	}
	q.waiting = nil
}

func (q *queue) finish(r *request) {
	r.waiter.stage = answered
	if r.waiter.wake != nil {
		select {
		case r.waiter.wake <- struct{}{}:
		default:
		}
	}
}

// handOver wakes the next leader: the request with the most time, so that no caller has to wait for another's. If no
// caller waits for the requests that are left, it reports false: this caller takes them.
func (q *queue) handOver() bool {
	q.calls--
	var next *request
	for _, r := range q.waiting {
		if q.calls >= q.allowed() || r.waiter.stage == leads {
			return true
		}
		if r.waiter.wake != nil && (next == nil || r.by > next.by) {
			next = r
		}
	}
	if next == nil {
		return len(q.waiting) == 0 || q.calls > 0
	}
	next.waiter.stage = leads
	q.calls++
	next.waiter.wake <- struct{}{}
	return true
}
