package reserve_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nextfree/pace"
)

// A program that ends: the callers that wait are told, and give their permits back.
func Example_shutDown() {
	limiter := pace.Must(pace.NewBursty(pace.Per(1, 1e12)))
	limiter.Allow() // the next permit comes in a quarter of an hour
	ctx, cancel := context.WithCancelCause(context.Background())
	var calls sync.WaitGroup
	calls.Go(func() {
		_, err := limiter.Acquire(ctx, 1)
		fmt.Println(err)
	})
	cancel(errors.New("shutting down"))
	calls.Wait()
	fmt.Println(limiter.Snapshot().Waiting)
	// Output:
	// shutting down
	// 0
}
