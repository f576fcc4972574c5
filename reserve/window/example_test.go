package window_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

// An API that allows 3 calls in any second.
func ExampleNew() {
	clock := clockwork.NewFakeClock() // in a test; leave it out otherwise
	limiter, err := window.New(3, time.Second, reserve.WithClock(clock))
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 7 {
		r, _ := limiter.Reserve(context.Background(), 1)
		fmt.Println(r.Delay())
	}
	// Output:
	// 0s
	// 0s
	// 0s
	// 1s
	// 1s
	// 1s
	// 2s
}

// At most 100 a minute, and spread out as well: no two closer than 100 ms.
func ExampleNew_spreadOut() {
	clock := clockwork.NewFakeClock()
	both := reserve.All(
		reserve.Must(window.New(100, time.Minute, reserve.WithClock(clock))),
		reserve.Must(pace.NewBursty(10, pace.WithBurst(0), reserve.WithClock(clock))),
	)
	for call := range 101 {
		r, _ := both.ReserveWithin(context.Background(), 1, reserve.Forever)
		if call < 2 || call > 98 {
			fmt.Println(call, r.Delay())
		}
	}
	// Output:
	// 0 0s
	// 1 100ms
	// 99 9.9s
	// 100 1m0s
}

// A request for more than the window holds could never go.
func ExampleNew_tooLarge() {
	limiter := reserve.Must(window.New(10, time.Second))
	_, err := limiter.Acquire(context.Background(), 11)
	var size *reserve.SizeError
	fmt.Println(errors.As(err, &size), size.Max)
	fmt.Println(err)
	// Output:
	// true 10
	// pace: 11 permits were asked for at once; this limiter never grants more than 10
}
