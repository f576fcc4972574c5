package smooth_test

import (
	"fmt"
	"math"

	"github.com/nextfree/pace/internal/smooth"
)

// A ledger of 10 a second that stores up to 5 permits, for free, is what a bursty limiter stands on. Its times are
// nanoseconds on a clock of the caller's.
func ExampleLedger() {
	curve := &smooth.Curve{Rate: 10, Capacity: 5, Interval: smooth.Interval(10), Refill: 10 / 1e9}
	ledger := smooth.New(curve, 0, 3, false) // with 3 stored, at the time 0
	for range 5 {
		_, ready, _ := ledger.Reserve(0, 1, math.MaxInt64)
		fmt.Print(ready/1e6, " ms; ")
	}
	// Output: 0 ms; 0 ms; 0 ms; 0 ms; 100 ms;
}

// A request that is given back moves those behind it up.
func ExampleLedger_Return() {
	curve := &smooth.Curve{Rate: 10, Interval: smooth.Interval(10)} // it stores nothing
	ledger := smooth.New(curve, 0, 0, false)
	ledger.Reserve(0, 1, math.MaxInt64)
	large, _, _ := ledger.Reserve(0, 20, math.MaxInt64)
	last, ready, _ := ledger.Reserve(0, 1, math.MaxInt64)
	fmt.Println(ready/1e6, "ms")
	ledger.Return(0, large, 0)
	ready, _ = ledger.Ready(0, last.Number)
	fmt.Println(ready/1e6, "ms")
	// Output:
	// 2100 ms
	// 100 ms
}

func ExampleCurve_Price() {
	curve := &smooth.Curve{Rate: 10, Capacity: 5, Interval: smooth.Interval(10), Refill: 10 / 1e9}
	taken, cost := curve.Price(3, 5)
	fmt.Println(taken, "from the store; all 5 cost", cost/1e6, "ms")
	// Output: 3 from the store; all 5 cost 200 ms
}
