package reserve

import (
	"math"
	"time"
)

// Per returns a rate in permits per second: Per(5000, time.Hour) is 5000 permits an
// hour, 1.388…/s. A d that is not positive gives NaN, which no limiter accepts.
func Per(permits float64, d time.Duration) float64 {
	if d <= 0 {
		return math.NaN()
	}
	return permits / d.Seconds()
}

// Must returns v, and panics if there is an error: for limiters whose rate and
// options are constants.
//
//	var limiter = reserve.Must(pace.NewBursty(10))
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
