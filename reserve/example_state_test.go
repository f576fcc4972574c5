package reserve_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve/calendar"
)

// A daily quota that a restart does not forget. (For several processes at once, and after a kill, too: package
// shared/file.)
func ExamplePolicy_Restore() {
	dir, err := os.MkdirTemp("", "state")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "quota")
	clock := clockwork.NewFakeClockAt(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)) // for the example
	policy := pace.Must(calendar.Policy(5000, calendar.Daily(time.UTC, 0), pace.WithClock(clock)))

	program := func(calls int) {
		limiter := policy.Limiter()
		if state, err := os.ReadFile(name); err == nil {
			limiter = pace.Must(policy.Restore(state))
		}
		fmt.Println(limiter.TakeUpTo(calls), "calls")
		state, err := limiter.AppendBinary(nil)
		if err != nil {
			panic(err)
		}
		if err := os.WriteFile(name, state, 0o600); err != nil {
			panic(err)
		}
	}
	program(3000)
	program(3000)
	clock.Advance(12 * time.Hour)
	program(3000)
	// Output:
	// 3000 calls
	// 2000 calls
	// 3000 calls
}
