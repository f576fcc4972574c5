package file_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/file"
)

// Two programs, or two runs of one, share a limiter. Here each is a function.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "limits")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	program := func() {
		store, err := file.Open(filepath.Join(dir, "mytool"))
		if err != nil {
			panic(err)
		}
		policy := pace.Must(pace.TokenBucket(pace.Per(100, 24*60*60*1e9), 100)) // 100 a day, all at once if need be
		limiter, err := shared.NewIn(store, "api", policy)
		if err != nil {
			panic(err)
		}
		granted, err := limiter.TryAcquire(context.Background(), 60)
		fmt.Println(granted, err)
	}
	program()
	program()
	// Output:
	// true <nil>
	// false <nil>
}

// A command-line tool that cron starts each minute makes 5,000 calls a day, and the rest waits for tomorrow.
func ExampleOpen_eachMinute() {
	dir := reserve.Must(os.MkdirTemp("", "limits")) // in a program, a folder of os.UserCacheDir()
	defer os.RemoveAll(dir)

	store, err := file.Open(dir)
	if err != nil {
		panic(err)
	}
	day := reserve.Must(calendar.Policy(5000, calendar.Daily(time.Local, 0)))
	api := reserve.Must(shared.NewIn(store, "api", day))
	for _, job := range []string{"a", "b"} {
		if ok, err := api.TryAcquire(context.Background(), 1); !ok {
			fmt.Println("tomorrow:", job, err)
			continue
		}
		fmt.Println("done:", job)
	}
	// Output:
	// done: a
	// done: b
}

// A day's budget of tokens in a file, which all processes and all runs share: five lines.
func ExampleOpen_tokensOfADay() {
	dir := reserve.Must(os.MkdirTemp("", "limits"))
	defer os.RemoveAll(dir)

	store := reserve.Must(file.Open(dir))
	day := reserve.Must(calendar.Policy(1_000_000, calendar.Daily(time.UTC, 0)))
	tokens := reserve.Must(shared.NewIn(store, "tokens", day))
	r := reserve.Must(tokens.ReserveWithin(context.Background(), 4000, 0)) // the estimate of a call
	r.Settle(1200)                                                         // what it used

	left, err := tokens.Stored(context.Background())
	fmt.Println(left, err)
	// Output: 998800 <nil>
}
