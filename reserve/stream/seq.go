package stream

import (
	"context"
	"iter"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/reserve"
)

// Seq returns the elements of seq as fast as the Reserver allows. It takes an element, waits for the permits that it
// costs, and yields it with a nil error. With a nil cost function each element costs 1; 0 is free.
//
// If the limiter does not grant the permits, because the context is done, its deadline is too near, or the cost is
// negative or too large, the last pair is the zero T and the error. That element is lost. A loop that ends early has
// paid only for its elements.
//
// At 10/s, with nothing stored and costs of 5, 1, 1, elements come at 0, 0.5 and 0.6 s.
//
// The result can be ranged over as often as seq can. Seq panics if seq, the context or the Reserver is nil.
func Seq[T any](ctx context.Context, seq iter.Seq[T], by reserve.Reserver, cost func(T) int) iter.Seq2[T, error] {
	notNil(ctx, "Seq's context")
	notNil(seq, "Seq's sequence")
	notNil(by, "Seq's limiter")
	return func(yield func(T, error) bool) {
		for element := range seq {
			permits := 1
			if cost != nil {
				permits = cost(element)
			}
			if err := pass(ctx, by, permits); err != nil {
				var none T
				yield(none, err)
				return
			}
			if !yield(element, nil) {
				return
			}
		}
	}
}

func pass(ctx context.Context, by reserve.Reserver, permits int) error {
	if permits != 0 {
		_, err := reserve.Acquire(ctx, by, permits)
		return err
	}
	return done.Cause(ctx)
}
