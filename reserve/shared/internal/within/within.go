// Package within ends calls of drivers that don't end with their contexts.
package within

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Calls counts the calls to one server that their callers have left; the zero value is ready to use.
type Calls struct {
	mu   sync.Mutex
	left int
	last time.Time // when the last call began beside mostLeft
}

const (
	// mostLeft calls hang at most, and one more each pause: a connection to a machine that is gone hangs for a quarter of
	// an hour.
	mostLeft = 8
	pause    = 10 * time.Second
)

var (
	// ErrHang says that a call was not begun, since others hang.
	ErrHang = errors.New("earlier calls have not returned")
	// ErrAborted says that a call has ended its goroutine.
	ErrAborted = errors.New("the call did not return")
)

func (c *Calls) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left < mostLeft {
		return nil
	}
	if time.Since(c.last) < pause {
		return ErrHang
	}
	c.last = time.Now()
	return nil
}

type answer[T any] struct {
	value    T
	err      error
	panicked any
}

// Do calls do in a goroutine and returns its answer, or the cause of the context's end if that comes first: then over
// is false, and do goes on. A panic of do is the caller's, unless that has left.
func Do[T any](ctx context.Context, c *Calls, do func() (T, error)) (value T, over bool, err error) {
	if err := c.begin(); err != nil {
		return value, true, err
	}
	answers, left := make(chan answer[T], 1), false
	go func() {
		a := answer[T]{err: ErrAborted}
		defer func() {
			a.panicked = recover()
			c.mu.Lock()
			defer c.mu.Unlock()
			if answers <- a; left {
				c.left--
			}
		}()
		a.value, a.err = do()
	}()
	select {
	case a := <-answers:
		return a.result(ctx)
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case a := <-answers: // it came at the same moment
		return a.result(ctx)
	default:
		left = true
		c.left++
		return value, false, context.Cause(ctx)
	}
}

func (a *answer[T]) result(ctx context.Context) (value T, over bool, err error) {
	if a.panicked != nil {
		panic(a.panicked)
	}
	if a.err != nil && ctx.Err() != nil { // drivers say that in ways of their own
		a.err = fmt.Errorf("%w: %w", context.Cause(ctx), a.err)
	}
	return a.value, true, a.err
}
