package pace_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/warmup"
)

var ctx = context.Background()

// Pacing the calls of an HTTP client: no more than 50 a second.
func Example() {
	api := httptest.NewServer(http.NotFoundHandler()) // somebody else's API
	defer api.Close()

	limiter, err := pace.NewBursty(50)
	if err != nil {
		log.Fatal(err)
	}
	calls := 0
	for range 10 {
		if _, err := limiter.Acquire(ctx, 1); err != nil {
			log.Fatal(err)
		}
		response, err := http.Get(api.URL)
		if err != nil {
			log.Fatal(err)
		}
		response.Body.Close()
		calls++
	}
	fmt.Println(calls, "calls made")
	// Output: 10 calls made
}

// The README's first program. (It prints real time, so it is compiled but not run.)
func Example_firstProgram() {
	limiter, err := pace.NewBursty(5) // five a second
	if err != nil {
		log.Fatal(err)
	}
	begin := time.Now()
	for call := range 6 {
		if _, err := limiter.Acquire(context.Background(), 1); err != nil {
			log.Fatal(err)
		}
		// The call goes here.
		fmt.Printf("call %d at %v\n", call, time.Since(begin).Round(10*time.Millisecond))
	}
}

// The worked example of the package comment, on a fake clock.
func ExampleNewBursty() {
	clock := clockwork.NewFakeClock()
	limiter := pace.Must(pace.NewBursty(5, pace.WithClock(clock)))
	clock.Advance(3 * time.Second)
	fmt.Println("stored:", limiter.Stored())

	for _, permits := range []int{5, 1, 1, 10, 1} {
		r, err := limiter.Reserve(ctx, permits)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%2d permits wait %v\n", permits, r.Delay())
		clock.Advance(r.Delay())
	}
	// Output:
	// stored: 5
	//  5 permits wait 0s
	//  1 permits wait 0s
	//  1 permits wait 200ms
	// 10 permits wait 200ms
	//  1 permits wait 2s
}

func ExampleWithBurst() {
	clock := clockwork.NewFakeClock()
	none := pace.Must(pace.NewBursty(100, pace.WithBurst(0), pace.WithClock(clock)))
	some := pace.Must(pace.NewBursty(100, pace.WithBurst(200*time.Millisecond), pace.WithClock(clock)))
	fixed := pace.Must(pace.NewBursty(100, pace.WithCapacity(7), pace.WithClock(clock)))
	clock.Advance(time.Hour)
	fmt.Println(none.Stored(), some.Stored(), fixed.Stored())
	// Output: 0 20 7
}

// After an idle second 51 calls go at once at 50/s: 50 are saved up, and one more is always
// prepaid. Without a burst it is one.
func ExampleWithBurst_atOnce() {
	clock := clockwork.NewFakeClock()
	byDefault := pace.Must(pace.NewBursty(50, pace.WithClock(clock)))
	evenly := pace.Must(pace.NewBursty(50, pace.WithBurst(0), pace.WithClock(clock)))
	clock.Advance(time.Second)
	for _, limiter := range []*pace.Limiter{byDefault, evenly} {
		atOnce := 0
		for limiter.Allow() {
			atOnce++
		}
		fmt.Println(atOnce)
	}
	// Output:
	// 51
	// 1
}

// A token bucket is full at the start, and a request waits for its own permits.
func ExampleNewTokenBucket() {
	clock := clockwork.NewFakeClock()
	limiter := pace.Must(pace.NewTokenBucket(10, 5, pace.WithClock(clock)))
	for _, permits := range []int{3, 4, 20} { // 20 are more than it holds
		r, err := limiter.Reserve(ctx, permits)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Delay())
	}
	// Output:
	// 0s
	// 200ms
	// 2.2s
}

func Example_warmUp() {
	clock := clockwork.NewFakeClock()
	limiter := pace.Must(warmup.New(2, 4*time.Second, pace.WithClock(clock)))
	for range 8 {
		r, _ := limiter.Reserve(ctx, 1)
		fmt.Print(r.Delay(), " ")
		clock.Advance(r.Delay())
	}
	// Output: 0s 1.375s 1.125s 875ms 625ms 500ms 500ms 500ms
}

// Doing something else instead of waiting too long. A refusal takes nothing, and
// says what the wait would have been.
func Example_refusal() {
	limiter := pace.Must(pace.NewBursty(1, pace.WithClock(clockwork.NewFakeClock())))
	limiter.TryAcquire(8)

	_, err := limiter.ReserveWithin(ctx, 1, 2*time.Second)
	var refused *pace.WaitError
	if errors.As(err, &refused) {
		fmt.Println("come back in", refused.Wait)
	}
	fmt.Println(err)

	soon, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	limiter = pace.Must(pace.NewBursty(1))
	limiter.TryAcquire(8)
	_, err = limiter.Acquire(soon, 1) // at once, not after 2 s
	fmt.Println("the deadline was the reason:", errors.Is(err, context.DeadlineExceeded))
	// Output:
	// come back in 8s
	// pace: a wait of 8s is longer than the longest allowed, 2s
	// the deadline was the reason: true
}

// 100 callers queue, and all give up, the first one first.
func Example_givingBack() {
	clock := clockwork.NewFakeClock()
	limiter := pace.Must(pace.NewBursty(10, pace.WithClock(clock)))
	limiter.Allow()

	queue := make([]*pace.Reservation, 100)
	for i := range queue {
		r, _ := limiter.Reserve(ctx, 1)
		queue[i] = &r
	}
	fmt.Println("the queue is", limiter.NextFree().Sub(clock.Now()))
	for _, r := range queue {
		r.Cancel()
	}
	fmt.Println("the next one waits", limiter.NextFree().Sub(clock.Now()))
	// Output:
	// the queue is 10.1s
	// the next one waits 100ms
}

// Somebody in the queue gives up, and those behind it move up.
func Example_movingUp() {
	clock := clockwork.NewFakeClock()
	limiter := pace.Must(pace.NewBursty(10, pace.WithClock(clock)))
	limiter.Allow()
	first, _ := limiter.Reserve(ctx, 5)
	second, _ := limiter.Reserve(ctx, 1)
	fmt.Println(first.Delay(), second.Delay())

	first.Settle(2) // it needs no more than that
	fmt.Println(first.Delay(), second.Delay())
	first.Cancel() // too late: Settle was final
	fmt.Println(first.Delay(), second.Delay())
	// Output:
	// 100ms 600ms
	// 100ms 300ms
	// 100ms 300ms
}

// A Cancel of permits that were used would give them back. Golang.org/x/time/rate does nothing then; so
// a "defer r.Cancel()" that worked there must go.
func Example_cancelAfterUse() {
	calls := func(cancel bool) (calls int) {
		clock := clockwork.NewFakeClock()
		limiter := pace.Must(pace.NewTokenBucket(10, 1, pace.WithClock(clock)))
		for begin := clock.Now(); clock.Since(begin) < 10*time.Second; calls++ {
			r, _ := limiter.Reserve(ctx, 1)
			clock.Advance(r.Delay())
			clock.Advance(50 * time.Millisecond) // the call
			if cancel {
				r.Cancel()
			}
		}
		return calls
	}
	fmt.Println("in 10 s:", calls(false))
	fmt.Println("cancelled after use:", calls(true))
	// Output:
	// in 10 s: 101
	// cancelled after use: 200
}

// An estimate is reserved before the call, and settled when the response tells what it cost.
func Example_settle() {
	clock := clockwork.NewFakeClock()
	tokens := pace.Must(pace.NewBursty(pace.Per(60_000, time.Minute), pace.WithClock(clock)))

	r, err := tokens.Reserve(ctx, 500)
	if err != nil {
		log.Fatal(err)
	}
	if err := r.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	// ... the call, which used 800
	r.Settle(800)
	fmt.Println("the next one waits", limiterDelay(tokens, clock))
	// Output: the next one waits 800ms
}

func limiterDelay(l *pace.Limiter, clock clockwork.Clock) time.Duration {
	return l.NextFree().Sub(clock.Now())
}

// A rate changes for requests from now on, and with Retime for waiting requests, too.
func Example_rates() {
	clock := clockwork.NewFakeClock()
	limiter := pace.Must(pace.NewBursty(1, pace.WithClock(clock)))
	limiter.TryAcquire(8)
	r, _ := limiter.Reserve(ctx, 1)

	fmt.Println(r.Delay(), limiter.SetRate(4), r.Delay(), limiter.Rate())
	fmt.Println(r.Delay(), limiter.Retime(8), r.Delay(), limiter.Rate())
	// Output:
	// 8s <nil> 8s 4
	// 8s <nil> 4s 8
}

// Ten a second, and a thousand an hour: both or neither.
func Example_all() {
	clock := clockwork.NewFakeClock()
	second := pace.Must(pace.NewBursty(10, pace.WithClock(clock)))
	hour := pace.Must(pace.NewBursty(pace.Per(1000, time.Hour), pace.WithCapacity(1000),
		pace.WithStored(1000), pace.WithClock(clock)))
	both := pace.All(second, hour)

	for range 3 {
		r, _ := both.ReserveWithin(ctx, 1, pace.Forever)
		fmt.Print(r.Delay(), " ")
	}
	_, err := both.ReserveWithin(ctx, 1, 0)
	fmt.Println(err)
	fmt.Println("left this hour:", hour.Stored())

	waited, err := pace.Acquire(ctx, pace.All(hour), 1) // waits, for any Reserver
	fmt.Println(waited, err)
	// Output:
	// 0s 100ms 200ms pace: a wait of 300ms for limit "1 of 2" is longer than the longest allowed, 0s
	// left this hour: 997
	// 0s <nil>
}

// The server said Retry-After: 30. Everybody's time moves by as much, and the
// spacing stays.
func Example_pause() {
	clock := clockwork.NewFakeClock()
	limiter := pace.Must(pace.NewBursty(10, pace.WithClock(clock)))
	limiter.Allow()
	first, _ := limiter.Reserve(ctx, 1)
	second, _ := limiter.Reserve(ctx, 1)

	limiter.PauseUntil(clock.Now().Add(30 * time.Second))
	fmt.Println(first.Delay(), second.Delay())

	clock.Advance(20 * time.Second)
	limiter.Resume() // it has changed its mind
	fmt.Println(first.Delay(), second.Delay())
	// Output:
	// 30.1s 30.2s
	// 100ms 200ms
}
