// Package done tells whether a context is done.
package done

import "context"

// Cause returns the cause of a context that is done, and nil of another. It asks Done, since some
// contexts (clockwork's, on a fake clock) block in Err until they are.
func Cause(ctx context.Context) error {
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
