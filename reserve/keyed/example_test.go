package keyed_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/warmup"
)

// Every user has 5 calls a second, and saves up as many.
func Example() {
	policy := reserve.Must(pace.Bursty(5, reserve.WithStored(5)))
	perUser := keyed.New(func(user string) (*reserve.Policy, error) { return policy, nil })

	handle := func(w http.ResponseWriter, r *http.Request) {
		if !perUser.TryAcquire(r.Header.Get("User"), 1) {
			http.Error(w, "slow down", http.StatusTooManyRequests)
		}
	}
	_ = handle

	for range 8 {
		fmt.Print(perUser.TryAcquire("ada", 1), " ")
	}
	fmt.Println(perUser.TryAcquire("bob", 1))
	// Output: true true true true true true false false true
}

// Some keys have more than others, and some have nothing.
func ExampleNew() {
	free := reserve.Must(pace.Bursty(1))
	paid := reserve.Must(warmup.Policy(100, 10*time.Second))
	errUnknown := errors.New("no such tenant")
	tenants := keyed.New(func(tenant string) (*reserve.Policy, error) {
		switch tenant {
		case "acme":
			return paid, nil
		case "bobs":
			return free, nil
		}
		return nil, errUnknown
	})

	_, err := tenants.Acquire(context.Background(), "acme", 1)
	fmt.Println(err)
	_, err = tenants.Acquire(context.Background(), "carols", 1)
	fmt.Println(err, errors.Is(err, errUnknown))
	fmt.Println(tenants.Len())
	// Output:
	// <nil>
	// no such tenant true
	// 1
}

// A flood of keys finds no room, and whoever is in debt stays there.
func ExampleWithMaxKeys() {
	clock := clockwork.NewFakeClock()
	policy := reserve.Must(pace.Bursty(1, reserve.WithClock(clock)))
	keys := keyed.New(func(string) (*reserve.Policy, error) { return policy, nil }, keyed.WithMaxKeys(2))
	keys.TryAcquire("a", 100)
	keys.TryAcquire("b", 1)

	_, err := keys.Acquire(context.Background(), "c", 1)
	fmt.Println(errors.Is(err, keyed.ErrTooManyKeys), keys.Len())

	clock.Advance(2 * time.Second) // b has paid, and saved up its second's worth
	_, err = keys.Acquire(context.Background(), "c", 1)
	fmt.Println(err, keys.Len(), keys.TryAcquire("a", 1))
	// Output:
	// true 2
	// <nil> 2 false
}

// One key's limiter goes wherever a limiter goes: here a call needs a permit of its
// host, and one of all calls.
func ExampleLimiters_For() {
	clock := clockwork.NewFakeClock()
	ten := reserve.Must(pace.Bursty(10, reserve.WithClock(clock)))
	perHost := keyed.New(func(host string) (*reserve.Policy, error) { return ten, nil })
	overall := reserve.Must(pace.NewBursty(15, reserve.WithClock(clock)))

	call := reserve.All(perHost.For("example.org"), overall)
	for range 3 {
		r, err := call.ReserveWithin(context.Background(), 1, time.Second)
		fmt.Println(r.Delay(), err)
	}

	// The host said: come back in a second.
	host := perHost.For("example.org").(interface{ PauseUntil(time.Time) })
	host.PauseUntil(clock.Now().Add(time.Second))
	r, err := perHost.ReserveWithin(context.Background(), "example.org", 1, reserve.Forever)
	fmt.Println(r.Delay(), err)
	// Output:
	// 0s <nil>
	// 100ms <nil>
	// 200ms <nil>
	// 1.3s <nil>
}

// A tenant buys a better plan, and has it at once.
func ExampleLimiters_Refresh() {
	clock := clockwork.NewFakeClock()
	plans := map[string]*reserve.Policy{
		"free": reserve.Must(pace.Bursty(1, reserve.WithClock(clock))),
		"paid": reserve.Must(pace.Bursty(100, reserve.WithClock(clock))),
	}
	database := map[string]string{"acme": "free"}
	perTenant := keyed.New(func(tenant string) (*reserve.Policy, error) {
		return plans[database[tenant]], nil
	}, keyed.WithTTL(time.Minute)) // in case that a change is missed

	asks := func() (granted int) { // 1000 times a second
		for range 1000 {
			clock.Advance(time.Millisecond)
			if perTenant.TryAcquire("acme", 1) {
				granted++
			}
		}
		return granted
	}
	asks()
	fmt.Println(asks(), "in a second")
	database["acme"] = "paid"
	fmt.Println(perTenant.Refresh("acme"))
	asks() // what it owed is paid
	fmt.Println(asks(), "in a second")
	// Output:
	// 1 in a second
	// <nil>
	// 100 in a second
}

// All tenants are asked for anew: the plans themselves have changed.
func ExampleLimiters_Keys() {
	policy := reserve.Must(pace.Bursty(1))
	perTenant := keyed.New(func(string) (*reserve.Policy, error) { return policy, nil })
	perTenant.TryAcquire("acme", 10)

	for tenant := range perTenant.Keys() {
		fmt.Println(tenant, perTenant.Refresh(tenant))
	}
	perTenant.Forget("acme") // its debt is forgiven
	fmt.Println(perTenant.Len(), perTenant.TryAcquire("acme", 1))
	// Output:
	// acme <nil>
	// 0 true
}
