package reserve_test

import (
	"context"
	"fmt"
	"time"

	"github.com/nextfree/pace"
)

// A helper returns a reservation by a named result: go vet reports return r as a copy.
func ExampleReservation_returned() {
	limiter := pace.Must(pace.NewBursty(1))
	soon := func(ctx context.Context) (r pace.Reservation, err error) {
		if r, err = limiter.ReserveWithin(ctx, 1, time.Second); err != nil {
			err = fmt.Errorf("no permit for a report: %w", err)
		}
		return
	}
	r, err := soon(context.Background())
	fmt.Println(r.Permits(), err)
	// Output: 1 <nil>
}
