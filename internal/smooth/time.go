package smooth

import "math"

// epsilon is the tolerance for rounding, in nanoseconds.
const epsilon = 1e-3

// roundUp rounds up to nanoseconds. It saturates, where Go's conversion is undefined.
func roundUp(nanoseconds float64) int64 {
	switch n := math.Ceil(nanoseconds - epsilon); {
	case n <= -math.MaxInt64:
		return -math.MaxInt64
	case n < math.MaxInt64: // false for NaN
		return int64(n)
	default:
		return math.MaxInt64
	}
}

func roundDown(nanoseconds float64) int64 { return -roundUp(-nanoseconds) }

// addSaturating returns t + d, d more than -1<<63: at most the largest time, at least 146 years before the first, since
// times must have differences.
func addSaturating(t, d int64) int64 {
	switch sum := t + d; {
	case d > 0 && sum < t:
		return math.MaxInt64
	case d < 0 && (sum > t || sum < -1<<62):
		return -1 << 62
	default:
		return sum
	}
}
