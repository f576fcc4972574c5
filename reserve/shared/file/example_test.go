package file_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nextfree/pace"
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
