package smooth

import "math"

// epsilon is the tolerance for rounding, in nanoseconds: what exceeds a whole number by less is
// that number.
const epsilon = 1e-3

// move moves a time, and rounds it up to a whole nanosecond. Early is the part of a nanosecond by
// which the time was rounded up before, and by which it is now.
func move(t int64, early, by float64) (int64, float64) {
	exact := by - early
	n := roundUp(exact)
	rest := float64(n) - exact
	if !(math.Abs(rest) < 2) { // also NaN: time has ended
		rest = 0
	}
	return addSaturating(t, n), rest
}

// roundUp returns the next whole number of nanoseconds. Go's own conversion of a float64 that is too
// large (or NaN) to int64 is undefined; this one saturates.
func roundUp(nanoseconds float64) int64 {
	switch n := math.Ceil(nanoseconds - epsilon); {
	case n <= -1<<62:
		return -1 << 62
	case n < math.MaxInt64: // false for NaN
		return int64(n)
	default:
		return math.MaxInt64
	}
}

// addSaturating returns t + d, but at most the largest time, and at least 146 years before the first: so
// that the difference of two times is a number of nanoseconds. D is more than -1<<63.
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
