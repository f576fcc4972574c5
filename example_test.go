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
	"github.com/nextfree/pace/reserve"
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
		fmt.Printf("call %d at %v\n", call, time.Since(begin).Round(10*time.Millisecond)) // the call goes here
	}
}

// The worked example of the package comment, on a fake clock.
func ExampleNewBursty() {
	clock := clockwork.NewFakeClock()
	limiter := reserve.Must(pace.NewBursty(5, reserve.WithClock(clock)))
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
	none := reserve.Must(pace.NewBursty(100, pace.WithBurst(0), reserve.WithClock(clock)))
	some := reserve.Must(pace.NewBursty(100, pace.WithBurst(200*time.Millisecond), reserve.WithClock(clock)))
	fixed := reserve.Must(pace.NewBursty(100, pace.WithCapacity(7), reserve.WithClock(clock)))
	clock.Advance(time.Hour)
	fmt.Println(none.Stored(), some.Stored(), fixed.Stored())
	// Output: 0 20 7
}

func Example_warmUp() {
	clock := clockwork.NewFakeClock()
	limiter := reserve.Must(warmup.New(2, 4*time.Second, reserve.WithClock(clock)))
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
	limiter := reserve.Must(pace.NewBursty(1, reserve.WithClock(clockwork.NewFakeClock())))
	limiter.TryAcquire(8)

	_, err := limiter.ReserveWithin(ctx, 1, 2*time.Second)
	var refused *reserve.WaitError
	if errors.As(err, &refused) {
		fmt.Println("come back in", refused.Wait)
	}
	fmt.Println(err)

	soon, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	limiter = reserve.Must(pace.NewBursty(1))
	limiter.TryAcquire(8)
	_, err = limiter.Acquire(soon, 1) // at once, not after 2 s
	fmt.Println("the deadline was the reason:", errors.Is(err, context.DeadlineExceeded))
	// Output:
	// come back in 8s
	// reserve: a wait of 8s is longer than the longest allowed, 2s
	// the deadline was the reason: true
}

// 100 callers queue, and all give up, the first one first.
func Example_givingBack() {
	clock := clockwork.NewFakeClock()
	limiter := reserve.Must(pace.NewBursty(10, reserve.WithClock(clock)))
	limiter.Allow()

	queue := make([]*reserve.Reservation, 100)
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

// An estimate is reserved before the call, and settled when the response tells what it cost.
func Example_settle() {
	clock := clockwork.NewFakeClock()
	tokens := reserve.Must(pace.NewBursty(reserve.Per(60_000, time.Minute), reserve.WithClock(clock)))

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

func limiterDelay(l *reserve.Limiter, clock clockwork.Clock) time.Duration {
	return l.NextFree().Sub(clock.Now())
}

// Ten a second, and a thousand an hour: both or neither.
func Example_all() {
	clock := clockwork.NewFakeClock()
	second := reserve.Must(pace.NewBursty(10, reserve.WithClock(clock)))
	hour := reserve.Must(pace.NewBursty(reserve.Per(1000, time.Hour), pace.WithCapacity(1000),
		reserve.WithStored(1000), reserve.WithClock(clock)))
	both := reserve.All(second, hour)

	for range 3 {
		r, _ := both.ReserveWithin(ctx, 1, reserve.Forever)
		fmt.Print(r.Delay(), " ")
	}
	_, err := both.ReserveWithin(ctx, 1, 0)
	fmt.Println(err)
	fmt.Println("left this hour:", hour.Stored())
	// Output:
	// 0s 100ms 200ms reserve: a wait of 300ms is longer than the longest allowed, 0s
	// left this hour: 997
}

// The server said Retry-After: 30. Everybody's time moves by as much, and the
// spacing stays.
func Example_pause() {
	clock := clockwork.NewFakeClock()
	limiter := reserve.Must(pace.NewBursty(10, reserve.WithClock(clock)))
	limiter.Allow()
	first, _ := limiter.Reserve(ctx, 1)
	second, _ := limiter.Reserve(ctx, 1)

	limiter.PauseUntil(clock.Now().Add(30 * time.Second))
	fmt.Println(first.Delay(), second.Delay())
	// Output: 30.1s 30.2s
}
