package pool_test

import (
	"context"
	"fmt"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/pool"
	"github.com/nextfree/pace/reserve/window"
)

// Several keys, used as one: each request gets the key that is free first.
func Example() {
	keys, err := pool.New([]pool.Member[string]{
		{Value: "key-a", By: reserve.Must(window.New(2, time.Hour))},
		{Value: "key-b", By: reserve.Must(window.New(1, time.Hour))},
	})
	if err != nil {
		panic(err)
	}
	for range 3 {
		lease, err := keys.Acquire(context.Background(), 1)
		if err != nil {
			panic(err)
		}
		fmt.Println(lease.Value())
	}
	_, err = keys.ReserveWithin(context.Background(), 1, time.Minute)
	fmt.Println(err != nil)
	// Output:
	// key-a
	// key-b
	// key-a
	// true
}

// Tiers: capacity that is paid for already first, and the other one when that would take 2 s longer.
func ExampleWithSlack() {
	deployments := reserve.Must(pool.New([]pool.Member[string]{
		{Value: "provisioned", By: reserve.Must(pace.NewBursty(1, pace.WithBurst(0)))},
		{Value: "by the token", By: reserve.Must(pace.NewBursty(1, pace.WithBurst(0))), Tier: 1},
	}, pool.WithSlack(2*time.Second)))
	var leases []*pool.Lease[string]
	for range 2 {
		lease, err := deployments.ReserveWithin(context.Background(), 1, reserve.Forever)
		if err != nil {
			panic(err)
		}
		leases = append(leases, &lease)
	}
	fmt.Println(leases[0].Value(), leases[1].Delay() > 0)
	for _, lease := range leases {
		lease.Cancel()
	}
	// Output: provisioned true
}

// A key that a server refuses for a while, and one that has become invalid.
func ExamplePool_PauseUntil() {
	keys := reserve.Must(pool.New([]pool.Member[string]{
		{Value: "key-a", By: reserve.Must(pace.NewBursty(10))},
		{Value: "key-b", By: reserve.Must(pace.NewBursty(10))},
	}))
	lease, err := keys.Acquire(context.Background(), 1)
	if err != nil {
		panic(err)
	}
	switch status := 429; status { // of the response
	case 429:
		keys.PauseUntil(lease.Member(), time.Now().Add(time.Minute))
	case 401:
		keys.Drop(lease.Member())
	}
	lease, err = keys.Acquire(context.Background(), 1)
	fmt.Println(lease.Value(), err)
	// Output: key-b <nil>
}
