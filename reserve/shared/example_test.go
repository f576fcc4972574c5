package shared_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
)

// Memory is a store for tests. Programs have Redis (shared.New with goredis.Client), a folder (package file),
// PostgreSQL or NATS.
func ExampleNewIn() {
	store := shared.Memory()
	one := pace.Must(shared.NewIn(store, "api", pace.Must(pace.TokenBucket(1, 3))))
	other := pace.Must(shared.NewIn(store, "api", pace.Must(pace.TokenBucket(1, 3))))
	for _, limiter := range []*shared.Limiter{one, other, one, other} {
		ok, err := limiter.TryAcquire(context.Background(), 1)
		fmt.Println(ok, err)
	}
	// Output:
	// true <nil>
	// true <nil>
	// true <nil>
	// false <nil>
}

// An answer to an HTTP request needs three things, which come from one call to the store.
func ExampleLimiter_Decide() {
	limiter := pace.Must(shared.NewIn(shared.Memory(), "api", pace.Must(pace.TokenBucket(0.1, 2))))
	for range 3 {
		d, err := limiter.Decide(context.Background(), 1)
		fmt.Println(d.Granted, int(d.Left), d.Wait.Round(time.Second), err)
	}
	// Output:
	// true 1 0s <nil>
	// true 0 10s <nil>
	// false 0 10s <nil>
}

// A limiter for each tenant, kept in one store.
func ExampleNewKeyedIn() {
	policy := pace.Must(pace.TokenBucket(1, 1, reserve.WithName("tenants")))
	limiters := pace.Must(shared.NewKeyedIn(shared.Memory(), policy))
	for _, tenant := range []string{"alice", "bob", "alice"} {
		ok, err := limiters.TryAcquire(context.Background(), tenant, 1)
		fmt.Println(tenant, ok, err)
	}
	// Output:
	// alice true <nil>
	// bob true <nil>
	// alice false <nil>
}

// A batch job waits until the store is back. A service that must answer says shared.FailOpen() or shared.Local(share).
func ExampleUnavailableError() {
	limiter := pace.Must(shared.NewIn(shared.Memory(), "api", pace.Must(pace.Bursty(10))))
	acquire := func(ctx context.Context) error {
		for {
			_, err := limiter.Acquire(ctx, 1)
			var down *shared.UnavailableError
			if !errors.As(err, &down) {
				return err // nil, or the context's
			}
			log.Println(down)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	fmt.Println(acquire(context.Background()))
	// Output: <nil>
}
