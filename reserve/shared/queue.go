package shared

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/saturate"
)

// A queue sends entries in lists. Entries that arrive during calls share the next. The first caller of a list makes
// the call, then wakes a caller that has arrived meanwhile. A limiter's entries are requests; a server's are the calls
// for many keys.
type queue[T queued[T]] struct {
	send func(context.Context, []T) error // a returned error is for the waiting entries too
	fill func(T) bool                     // answers an entry that has waited without a call, if it can; or nil

	mu      sync.Mutex
	waiting []T // first come, first served
	calls   int
	order   atomic.Bool // callers wait for permits, so their order matters
}

type queued[T any] interface {
	comparable
	at() *place
	undo() (T, bool) // what takes back an entry whose caller has left, if anything
}

// A place is an entry's in its queue.
type place struct {
	by    int64         // the answer is wanted by then
	err   error         // there was no answer
	stage stage         // guarded by the queue's lock
	wake  chan struct{} // nil: no caller waits for the answer
}

func (p *place) at() *place { return p }

const (
	// maxCalls keep a server busy while answers travel: two decide as much as four, in four fifths of the server's
	// time. Where callers queue for permits it is one: calls may overtake each other.
	maxCalls = 2
	// maxList bounds how long one script runs (a few hundred microseconds), and how long the first call of a pipeline
	// waits for the last (some milliseconds).
	maxList = 256
)

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
// entry.
func (q *queue[T]) do(ctx context.Context, r T, patience time.Duration) error {
	q.mu.Lock()
	q.waiting = append(q.waiting, r)
	if q.calls < q.allowed() {
		q.calls++
		q.lead(ctx, r)
		return nil
	}
	r.at().wake = make(chan struct{}, 1)
	q.mu.Unlock()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		var over error
		select {
		case <-r.at().wake:
		case <-late.C:
			over = errPatience
		case <-ctx.Done():
			over = context.Cause(ctx)
		}
		q.mu.Lock()
		if over != nil && r.at().stage != answered {
			q.leave(ctx, r)
			return over
		}
		switch r.at().stage {
		case leads:
			q.lead(ctx, r)
			return nil
		case answered:
			q.mu.Unlock()
			return nil
		}
		q.mu.Unlock() // another caller has taken it along
	}
}

// leave removes a waiting entry, or marks it as left. It unlocks the queue.
func (q *queue[T]) leave(ctx context.Context, r T) {
	was := r.at().stage
	r.at().stage = left
	if was != sent {
		q.waiting = slices.DeleteFunc(q.waiting, func(other T) bool { return other == r })
	}
	if was == leads && !q.handOver() {
		q.calls++
		q.lead(ctx, r)
		return
	}
	q.mu.Unlock()
}

func (q *queue[T]) allowed() int {
	if q.order.Load() {
		return 1
	}
	return maxCalls
}

// lead unlocks the queue. Permits of callers that have left go back with the next list, or in a call of their own.
func (q *queue[T]) lead(ctx context.Context, leader T) {
	for again := true; again; {
		n := min(len(q.waiting), maxList)
		if i := slices.Index(q.waiting, leader); i >= n {
			n = i + 1
		}
		list := slices.Clone(q.waiting[:n])
		q.waiting = slices.Delete(q.waiting, 0, n)
		for _, r := range list {
			if r.at().stage == leads && r != leader {
				q.calls-- // it need not any more
			}
			r.at().stage = sent
		}
		q.wakeLeader()
		q.mu.Unlock()
		again = q.take(ctx, list)
	}
	q.mu.Unlock()
}

// take returns with the queue locked, and reports whether the caller is to make another call. If the client panics,
// the queue is as after a failed call, and unlocked.
func (q *queue[T]) take(ctx context.Context, list []T) (again bool) {
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
	failed = q.send(ctx, list) != nil
	returned = true
	return false
}

// finishList answers entries. If the call failed, the waiting entries fail too.
func (q *queue[T]) finishList(list []T, failed bool) {
	err := errAborted
	for _, r := range list {
		if r.at().stage == left {
			if undo, has := r.undo(); has {
				q.waiting = append(q.waiting, undo)
			}
		}
		if failed && r.at().err != nil {
			err = r.at().err
		}
		r.at().finish()
	}
	if !failed {
		q.fillWaiting()
		return
	}
	for _, r := range q.waiting {
		if r.at().stage == leads {
			q.calls--
		}
		r.at().err = err
		r.at().finish()
	}
	q.waiting = nil
}

func (q *queue[T]) fillWaiting() {
	q.waiting = slices.DeleteFunc(q.waiting, func(r T) bool {
		filled := r.at().stage == waits && q.fill != nil && q.fill(r)
		if filled {
			r.at().finish()
		}
		return filled
	})
}

func (p *place) finish() {
	p.stage = answered
	if p.wake != nil {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// handOver ends a call. If no caller waits for the entries that are left, it reports false: this caller takes them.
func (q *queue[T]) handOver() bool {
	q.calls--
	return q.wakeLeader()
}

// wakeLeader wakes the next leader, if one may call: the caller with the most time, so that no caller has to wait for
// another's. It reports false if there is nobody to wake.
func (q *queue[T]) wakeLeader() bool {
	var next *place
	for _, r := range q.waiting {
		p := r.at()
		if q.calls >= q.allowed() || p.stage == leads {
			return true
		}
		if p.wake != nil && (next == nil || p.by > next.by) {
			next = p
		}
	}
	if next == nil {
		return len(q.waiting) == 0 || q.calls > 0
	}
	next.stage = leads
	q.calls++
	next.wake <- struct{}{}
	return true
}
