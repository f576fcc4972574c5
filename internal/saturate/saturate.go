// Package saturate adds numbers without overflow.
package saturate

import (
	"math"
	"time"
)

// Add returns a + b, or the largest or smallest number if the sum is beyond it.
func Add[T int64 | time.Duration](a, b T) T {
	switch sum := a + b; {
	case b > 0 && sum < a:
		return math.MaxInt64
	case b < 0 && sum > a:
		return math.MinInt64
	default:
		return sum
	}
}

// Never is the largest time in nanoseconds: it stands for none.
const Never = math.MaxInt64
