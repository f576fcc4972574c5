package goredis_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/goredis"
)

// Every process that does this shares 100 calls a second.
func ExampleClient() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
	limiter, err := shared.New(goredis.Client(client), "api", reserve.Must(pace.Bursty(100)))
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := limiter.Acquire(context.Background(), 1); err != nil {
		fmt.Println(err)
		return
	}
	// call the API
}

// With Redis down, each of 4 processes goes on at a quarter of the rate.
func ExampleClient_local() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
	limiter, err := shared.New(goredis.Client(client), "api", reserve.Must(pace.Bursty(100)), shared.Local(0.25))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = limiter.Acquire(context.Background(), 1)
}

// Without a fallback the caller decides.
func ExampleClient_unavailable() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
	limiter := reserve.Must(shared.New(goredis.Client(client), "api", reserve.Must(pace.Bursty(100))))
	_, err := limiter.ReserveWithin(context.Background(), 1, time.Second)
	var refused *reserve.WaitError
	var unavailable *shared.UnavailableError
	switch {
	case errors.As(err, &refused):
		fmt.Println("busy for", refused.Wait)
	case errors.As(err, &unavailable):
		fmt.Println("Redis is down:", unavailable.Err)
	}
}

// Each tenant has a limiter of its own in Redis, and all of them together have one in this process.
func ExampleClient_keyed() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
	policy := reserve.Must(pace.Bursty(10, reserve.WithName("tenants")))
	tenants := reserve.Must(shared.NewKeyed(goredis.Client(client), policy))
	machine := reserve.Must(pace.NewBursty(500))
	_, err := reserve.Acquire(context.Background(), reserve.All(tenants.For("acme"), machine), 1)
	if err != nil {
		fmt.Println(err)
	}
}
