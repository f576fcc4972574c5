package calendar_test

import (
	"fmt"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve/calendar"
)

// Two calls a day. At ten in the evening the third waits until midnight.
func Example() {
	clock := clockwork.NewFakeClockAt(time.Date(2026, time.March, 1, 22, 0, 0, 0, time.UTC))
	quota := pace.Must(calendar.New(2, calendar.Daily(time.UTC, 0), pace.WithClock(clock)))
	for range 3 {
		wait, err := quota.Peek(1)
		fmt.Println(wait, err)
		quota.TryAcquire(1)
	}
	// Output:
	// 0s <nil>
	// 0s <nil>
	// 2h0m0s <nil>
}
