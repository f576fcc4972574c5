package queue

import (
	"math"
	"math/bits"
)

// A Total is a sum of permits, exact up to 2^128.
type Total struct{ high, low uint64 }

// Add adds n permits, and takes them off if n is negative.
func (t *Total) Add(n int) {
	var carry uint64
	t.low, carry = bits.Add64(t.low, uint64(n), 0)
	t.high += carry
	if n < 0 {
		t.high-- // n is its value less 2^64
	}
}

// Plus returns the sum of both.
func (t Total) Plus(other Total) Total {
	low, carry := bits.Add64(t.low, other.low, 0)
	return Total{t.high + other.high + carry, low}
}

// Int returns the total, or the largest int.
func (t Total) Int() int {
	if t.high > 0 || t.low > math.MaxInt {
		return math.MaxInt
	}
	return int(t.low)
}

// Less returns the total without n permits.
func (t Total) Less(n int) Total {
	t.Add(-n)
	return t
}
