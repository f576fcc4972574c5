// Package done tells whether a context is done.
package done

import "context"

// Cause returns the cause of a context that is done, or nil. It uses Done, because some contexts (clockwork's, on a
// fake clock) block in Err until they are done. A nil context panics.
func Cause(ctx context.Context) error {
	if ctx == nil {
		panic("pace: the context is nil: use context.Background()")
	}
	done := ctx.Done()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return context.Cause(ctx)
	default:
		return nil
	}
}
