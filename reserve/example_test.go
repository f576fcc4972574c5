package reserve_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

// The examples have a fake clock, so that their times are exact. Programs need none.
var (
	clock = clockwork.NewFakeClock()
)

func ExampleLimiter_TryAcquire() {
	limiter := pace.Must(pace.NewBursty(10, pace.WithStored(1), pace.WithClock(clock)))
	fmt.Println(limiter.TryAcquire(1), "from the store")
	fmt.Println(limiter.TryAcquire(1), "prepaid: the next request waits for it")
	fmt.Println(limiter.TryAcquire(1))
	// Output:
	// true from the store
	// true prepaid: the next request waits for it
	// false
}

// A worker asks how many jobs it may start now.
func ExampleLimiter_TakeUpTo() {
	limiter := pace.Must(pace.NewBursty(10, pace.WithStored(5), pace.WithClock(clock)))
	fmt.Println(limiter.TakeUpTo(100), "jobs now")
	clock.Advance(300 * time.Millisecond)
	fmt.Println(limiter.TakeUpTo(100), "300 ms later")
	// Output:
	// 6 jobs now
	// 3 300 ms later
}

func ExampleLimiter_Reserve() {
	limiter := pace.Must(pace.NewBursty(10, pace.WithClock(clock)))
	for range 3 {
		r, err := limiter.Reserve(ctx, 2)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.Delay()) // r.Wait(ctx) waits for so long
	}
	// Output:
	// 0s
	// 200ms
	// 400ms
}

func ExampleLimiter_ReserveWithin() {
	limiter := pace.Must(pace.NewBursty(10, pace.WithClock(clock)))
	limiter.TryAcquire(50)
	_, err := limiter.ReserveWithin(ctx, 1, time.Second)
	var refused *pace.WaitError
	fmt.Println(errors.As(err, &refused), refused.Wait)
	// Output: true 5s
}

// The ETA of a progress bar.
func ExampleLimiter_Forecast() {
	limiter := pace.Must(pace.NewBursty(10, pace.WithStored(10), pace.WithClock(clock)))
	fmt.Println(limiter.Forecast(111).Sub(clock.Now()))
	// Output: 10s
}

func ExampleLimiter_Peek() {
	limiter := pace.Must(pace.NewTokenBucket(1, 5, pace.WithClock(clock)))
	wait, err := limiter.Peek(8)
	fmt.Println(wait, err)
	// Output: 3s <nil>
}

// The rate changes for waiting requests, too.
func ExampleLimiter_Retime() {
	limiter := pace.Must(pace.NewBursty(1, pace.WithClock(clock)))
	limiter.TryAcquire(8)
	waiting := pace.Must(limiter.Reserve(ctx, 1))
	fmt.Println(waiting.Delay())
	if err := limiter.Retime(2); err != nil {
		fmt.Println(err)
	}
	fmt.Println(waiting.Delay())
	// Output:
	// 8s
	// 4s
}

// The rate changes for requests from now on. Promised times stay.
func ExampleLimiter_SetRate() {
	limiter := pace.Must(pace.NewBursty(1, pace.WithClock(clock)))
	limiter.TryAcquire(8)
	waiting := pace.Must(limiter.Reserve(ctx, 1))
	if err := limiter.SetRate(2); err != nil {
		fmt.Println(err)
	}
	next, last := pace.Must(limiter.Reserve(ctx, 1)), pace.Must(limiter.Reserve(ctx, 1))
	fmt.Println(waiting.Delay(), next.Delay(), last.Delay())
	// Output: 8s 9s 9.5s
}

func ExampleLimiter_PauseUntil() {
	limiter := pace.Must(pace.NewBursty(10, pace.WithClock(clock)))
	limiter.TryAcquire(1)
	waiting := pace.Must(limiter.Reserve(ctx, 1))
	limiter.PauseUntil(clock.Now().Add(2 * time.Second))
	fmt.Println(waiting.Delay())
	limiter.Resume()
	fmt.Println(waiting.Delay())
	// Output:
	// 2.1s
	// 100ms
}

func ExampleLimiter_Snapshot() {
	limiter := pace.Must(pace.NewBursty(10, pace.WithStored(2), pace.WithClock(clock)))
	limiter.TryAcquire(3)
	s := limiter.Snapshot()
	fmt.Println(s.Rate, s.Granted, s.Wait)
	// Output: 10 3 100ms
}

// Whoever waits moves up.
func ExampleReservation_Cancel() {
	limiter := pace.Must(pace.NewBursty(10, pace.WithClock(clock)))
	limiter.TryAcquire(1)
	first, second := pace.Must(limiter.Reserve(ctx, 20)), pace.Must(limiter.Reserve(ctx, 1))
	fmt.Println(first.Delay(), second.Delay())
	first.Cancel()
	fmt.Println(second.Delay())
	// Output:
	// 100ms 2.1s
	// 100ms
}

// A cost that is known only afterwards.
func ExampleReservation_Settle() {
	limiter := pace.Must(pace.NewBursty(1000, pace.WithClock(clock)))
	call := pace.Must(limiter.Reserve(ctx, 500)) // an estimate
	next := pace.Must(limiter.Reserve(ctx, 500))
	fmt.Println(next.Delay())
	call.Settle(200)
	fmt.Println(next.Delay())
	// Output:
	// 500ms
	// 200ms
}

// Evenly ten a second, and never more than 12 in two seconds.
func ExampleAll() {
	both := reserve.All(
		pace.Must(pace.NewBursty(10, pace.WithBurst(0), pace.WithClock(clock))),
		pace.Must(window.New(12, 2*time.Second, pace.WithClock(clock))),
	)
	for range 13 {
		r, err := both.ReserveWithin(ctx, 1, time.Minute)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(r.Delay(), " ")
	}
	// Output: 0s 100ms 200ms 300ms 400ms 500ms 600ms 700ms 800ms 900ms 1s 1.1s 2s
}

func ExamplePer() {
	limiter := pace.Must(pace.NewBursty(reserve.Per(90, time.Minute), pace.WithClock(clock)))
	fmt.Println(limiter.Rate(), "a second")
	// Output: 1.5 a second
}

func ExamplePayUpfront() {
	limiter := pace.Must(pace.NewBursty(10, reserve.PayUpfront(), pace.WithClock(clock)))
	large, small := pace.Must(limiter.Reserve(ctx, 8)), pace.Must(limiter.Reserve(ctx, 1))
	fmt.Println(large.Delay(), small.Delay())
	// Output: 800ms 900ms
}

func ExampleWithMaxWait() {
	limiter := pace.Must(pace.NewBursty(10, reserve.WithMaxWait(time.Second), pace.WithClock(clock)))
	limiter.TryAcquire(15)
	_, err := limiter.Reserve(ctx, 1)
	fmt.Println(err)
	// Output: pace: a wait of 1.5s is longer than the longest allowed, 1s
}
