package warmup_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/warmup"
)

// A limiter that has been idle begins at a third of its rate, and reaches it after the period. (The fake clock makes
// the times of the example exact.)
func ExampleNew() {
	clock := clockwork.NewFakeClock()
	limiter, err := warmup.New(2, 4*time.Second, pace.WithClock(clock))
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 8 {
		r, err := limiter.Reserve(context.Background(), 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(r.Delay().Round(10*time.Millisecond), " ")
		clock.Advance(r.Delay())
	}
	// Output: 0s 1.38s 1.13s 880ms 630ms 500ms 500ms 500ms
}

// With a cold factor of 6 the first permits take six times as long.
func ExampleWithColdFactor() {
	clock := clockwork.NewFakeClock()
	limiter := pace.Must(warmup.New(2, 4*time.Second, warmup.WithColdFactor(6), pace.WithClock(clock)))
	limiter.TryAcquire(1)
	fmt.Println(limiter.NextFree().Sub(clock.Now()).Round(10 * time.Millisecond))
	// Output: 2.45s
}
