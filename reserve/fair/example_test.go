package fair_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/window"
)

// A batch behind people: a call that a person waits for goes next, however many calls of the batch are waiting.
func Example() {
	limiter := reserve.Must(pace.NewBursty(10, pace.WithBurst(0)))
	queue, err := fair.New(limiter, []fair.Class{
		{Name: "people", Priority: 1},
		{Name: "batch"},
	})
	if err != nil {
		panic(err)
	}
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			ctx := fair.With(context.Background(), "batch", "")
			if _, err := queue.Acquire(ctx, 1); err != nil {
				panic(err)
			}
		})
	}
	for queue.Snapshot().Classes[1].Waiting < 3 {
		time.Sleep(time.Millisecond)
	}
	_, err = queue.Acquire(fair.With(context.Background(), "people", ""), 1)
	fmt.Println(queue.Snapshot().Classes[1].Waiting > 0, err) // calls of the batch still wait
	all.Wait()
	// Output: true <nil>
}

// The same with HTTP clients: one for each class.
func ExampleQueue_Class() {
	limiter := reserve.Must(pace.NewBursty(50, pace.WithBurst(0)))
	queue := reserve.Must(fair.New(limiter, []fair.Class{{Name: "people", Priority: 1}, {Name: "batch", MaxAge: time.Minute}}))
	people := &http.Client{Transport: reserve.Must(outbound.New(nil, queue.Class("people")))}
	batch := &http.Client{Transport: reserve.Must(outbound.New(nil, queue.Class("batch")))}
	_, _ = people, batch
}

// Tenants: each customer gets a share, in proportion to what it pays, of what the others leave.
func ExampleWithTenants() {
	paid := map[string]float64{"acme": 2}
	weight := func(tenant string) float64 { return max(1, paid[tenant]) }
	clock := clockwork.NewFakeClock()
	limiter := reserve.Must(pace.NewBursty(1, pace.WithBurst(0), reserve.WithClock(clock)))
	queue := reserve.Must(fair.New(limiter, []fair.Class{{Name: "api"}}, fair.WithTenants(weight), fair.WithClock(clock)))

	limiter.TryAcquire(1) // so that the next requests wait
	reserveFor := func(tenant string) reserve.Reservation {
		ctx := fair.With(context.Background(), "api", tenant)
		return reserve.Must(queue.ReserveWithin(ctx, 1, reserve.Forever))
	}
	var acme, small []reserve.Reservation
	for range 4 {
		acme = append(acme, reserveFor("acme"))
	}
	for range 2 {
		small = append(small, reserveFor("small"))
	}
	for i := range acme {
		fmt.Print("acme ", acme[i].Delay(), ", ")
	}
	for i := range small {
		fmt.Print("small ", small[i].Delay(), ", ")
	}
	// Output: acme 1s, acme 3s, acme 4s, acme 6s, small 2s, small 5s,
}

// Headroom: the batch leaves 30 of 100 an hour for people.
func ExampleClass_leave() {
	limit := reserve.Must(window.New(100, time.Hour))
	queue := reserve.Must(fair.New(limit, []fair.Class{{Name: "people", Priority: 1}, {Name: "batch", Limit: reserve.Must(window.New(70, time.Hour))}}))
	try := func(class string) (n int) {
		for {
			if _, err := queue.Class(class).ReserveWithin(context.Background(), 1, 0); err != nil {
				return n
			}
			n++
		}
	}
	fmt.Println(try("batch"), try("people"))
	// Output: 70 30
}
