package shared

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/saturate"
)

// A queue sends entries in lists: entries that arrive during calls share the next. A goroutine makes the call where the
// caller queues or may leave before the answer, which would cost the client a connection. A limiter's entries are
// requests; a server's are the calls for many keys.
type queue[T queued[T]] struct {
	send func(context.Context, []T) error // a returned error is for the waiting entries too
	fill func(T) bool                     // answers an entry that has waited without a call, if it can; or nil
	most time.Duration                    // a call's time
	now  func() int64

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

type place struct {
	by    int64 // on the limiter's clock: its caller leaves then; never, or 0: it does not
	err   error // there was no answer
	panic any   // the client's, for this caller

	ctx   context.Context // the caller's, of which the call has the values; nil: no caller waits
	stage stage           // guarded by the queue's lock
	done  chan struct{}   // closed when it is answered
}

func (p *place) at() *place { return p }

const (
	// maxCalls keep a server busy while answers travel: two decide as much as four. Where callers queue for permits it
	// is one: calls may overtake each other.
	maxCalls = 2
	// maxList bounds how long one script runs: a few hundred microseconds.
	maxList = 256
)

type stage int

const (
	waits stage = iota
	sent
	left // its caller does not wait for the answer any more
	answered
)

const never = saturate.Never

// do returns the context's cause, or errPatience when the entry's time is up. A call's error is in the entry. If the
// client panics, so does a caller of the call.
func (q *queue[T]) do(ctx context.Context, r T) error {
	p := r.at()
	patience := time.Duration(p.by - q.now())
	p.ctx = ctx
	leaves := patience < q.most || q.most > 0 && ctx.Done() != nil
	q.mu.Lock()
	q.waiting = append(q.waiting, r)
	var over error
	if q.calls < q.allowed() && len(q.waiting) == 1 && !leaves {
		list := q.take()
		q.mu.Unlock()
		q.call(list)
	} else {
		p.done = make(chan struct{})
		q.begin()
		if p.stage == sent && patience >= q.most { // the call ends by itself
			patience = math.MaxInt64
		}
		q.mu.Unlock()
		over = p.await(patience)
	}
	if over != nil && q.leave(r) {
		return over
	}
	if p.panic != nil {
		panic(p.panic)
	}
	return nil
}

func (p *place) await(patience time.Duration) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-p.done:
		return nil
	case <-late.C:
		return errPatience
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
}

func (q *queue[T]) leave(r T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := r.at()
	switch p.stage {
	case answered:
		return false
	case waits:
		q.waiting = slices.DeleteFunc(q.waiting, func(other T) bool { return other == r })
	}
	p.stage = left
	return true
}

func (q *queue[T]) allowed() int {
	if q.order.Load() {
		return 1
	}
	return maxCalls
}

// idle reports whether no call is under way: one that its caller has left may find out that permits are owed.
func (q *queue[T]) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.calls == 0
}

func (q *queue[T]) begin() {
	for len(q.waiting) > 0 && q.calls < q.allowed() {
		go q.call(q.take())
	}
}

func (q *queue[T]) take() []T {
	q.calls++
	list := slices.Clone(q.waiting[:min(len(q.waiting), maxList)])
	q.waiting = slices.Delete(q.waiting, 0, len(list))
	for _, r := range list {
		r.at().stage = sent
	}
	return list
}

func (q *queue[T]) call(list []T) {
	failed := true
	defer func() {
		v := recover() // nil as well if the client has ended the goroutine
		q.mu.Lock()
		defer q.mu.Unlock()
		q.finish(list, failed, v)
		q.calls--
		q.begin()
	}()
	ctx := context.Background()
	if of := slices.IndexFunc(list, func(r T) bool { return r.at().ctx != nil }); of >= 0 {
		ctx = context.WithoutCancel(list[of].at().ctx)
	}
	failed = q.send(ctx, list) != nil
}

func (q *queue[T]) finish(list []T, failed bool, panicked any) {
	err := errAborted
	for _, r := range list {
		p := r.at()
		if p.stage == left {
			q.undo(r)
		} else if p.ctx != nil {
			p.panic, panicked = panicked, nil
		}
		if failed && p.err != nil {
			err = p.err
		}
		p.finish()
	}
	if !failed {
		q.fillWaiting()
		return
	}
	for _, r := range q.waiting {
		r.at().err = err
		r.at().finish()
	}
	q.waiting = nil
}

func (q *queue[T]) post(r T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, r)
	q.begin()
}

func (q *queue[T]) giveBack(r T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.undo(r)
	q.begin()
}

func (q *queue[T]) undo(r T) {
	if undo, has := r.undo(); has {
		q.waiting = append(q.waiting, undo)
	}
}

func (q *queue[T]) fillWaiting() {
	q.waiting = slices.DeleteFunc(q.waiting, func(r T) bool {
		filled := q.fill != nil && q.fill(r)
		if filled {
			r.at().finish()
		}
		return filled
	})
}

func (p *place) finish() {
	p.stage = answered
	if p.done != nil {
		close(p.done)
	}
}
