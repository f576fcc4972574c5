// Package fifo queues calls that need permits of several limits. They are served first come, first served, by all
// limits or none, and all limits are charged at the moment the call goes.
//
// A limiter that sells a permit before the call goes forgets it earlier than the server does. So of the waiting calls
// only the first one reserves: at the limit for which it must wait longest, and, when that time comes, at the others.
// If one of those has no room by then, the first call waits for that one in the same way. Shortly before it goes the
// next call has its turn, so that no time is lost if the program is slow to wake.
//
// There is a line for each set of keys, so that no key slows another. Lines that share a limit meet in the
// limiter's own queue, with their first calls.
package fifo

import (
	"context"
	"sync"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/bykey"
	"github.com/nextfree/pace/reserve/internal/engine"
)

// A Limit is what a call asks of one limit.
type Limit struct {
	By      reserve.Reserver
	Permits int // at least 1
	// Recount, if it is not nil, returns the permits once more when the call's turn comes: less than 1 counts as 1.
	Recount func() int
	// Gate is asked for one permit as well, if By can't be paused itself; nil: it can.
	Gate reserve.Reserver
	// Open, if it is not nil, blocks until a call may ask By. While nothing is known of the limit, one call goes alone,
	// and the others wait for what it finds.
	Open func(ctx context.Context) error

	// Held is the reservation that Acquire makes.
	Held reserve.Reservation
}

// local reports whether the limiter is one of this process. Then reserving and cancelling cost little, and it can be
// asked without taking anything.
func (l *Limit) local() bool {
	switch l.By.(type) {
	case *reserve.Limiter, bykey.Key:
		return true
	default:
		return false
	}
}

func allLocal(limits []Limit) bool {
	for i := range limits {
		if !limits[i].local() {
			return false
		}
	}
	return true
}

// allPatient reports whether all limiters let a call wait for any time.
func allPatient(limits []Limit) bool {
	for i := range limits {
		switch by := limits[i].By.(type) {
		case *reserve.Limiter:
			if (*engine.Limiter)(by).Outlook().MaxWait < reserve.Forever {
				return false
			}
		case bykey.Key:
			if o, err := by.Outlook(); err != nil || o.MaxWait < reserve.Forever {
				return false
			}
		}
	}
	return true
}

// Lines holds the lines of all sets of keys. The zero value is ready to use.
type Lines struct {
	mu    sync.Mutex
	lines map[any]*line
}

// Acquire waits until a call may go, and then holds a reservation of each limit. Calls are numbered in the
// order in which they were made. A retry keeps its place: it goes ahead of later calls, except the one
// whose turn has begun.
//
// If the wait would be longer than maxWait or the context's deadline allow, Acquire returns a
// *reserve.WaitError at once and takes nothing. That is exact but for what other lines that share a limit
// will ask.
func (l *Lines) Acquire(ctx context.Context, keys any, call uint64, limits []Limit, maxWait time.Duration) error {
	if len(limits) == 0 {
		return nil
	}
	for i := range limits {
		limits[i].Held = reserve.Reservation{} // of an earlier attempt
	}
	if len(limits) == 1 && !limits[0].local() {
		return limits[0].direct(ctx, maxWait)
	}
	w := &waiter{call: call, limits: limits}
	_, hurried := ctx.Deadline()
	ahead := l.enter(keys, w, hurried || maxWait < reserve.Forever)
	defer l.leave(keys, w)
	if w.ready != nil {
		if err := refuse(ctx, limits, ahead, maxWait); err != nil {
			return err
		}
		select {
		case <-w.ready:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if allLocal(limits) {
			maxWait = reserve.Forever // it was told that it can wait
		}
	}
	l.recount(keys, w)
	return w.take(ctx, maxWait, l, keys)
}

// Refuse returns the error that Acquire would return at once. It takes nothing.
func (l *Lines) Refuse(ctx context.Context, keys any, call uint64, limits []Limit, maxWait time.Duration) error {
	var ahead [][]int
	l.mu.Lock()
	if q := l.lines[keys]; q != nil {
		ahead = q.ahead(q.last(call), limits)
	}
	l.mu.Unlock()
	for i := range limits {
		if g, ok := limits[i].Gate.(bykey.Key); ok {
			if err := g.RefuseBehind(ctx, nil, 1, maxWait); err != nil {
				return err
			}
		}
	}
	return refuse(ctx, limits, ahead, maxWait)
}
