package queue

import (
	"math"
	"math/bits"
)

// A Total is a sum of permits, exact up to 2^128.
type Total struct{ high, low uint64 }

// Add adds n permits; n may be negative.
func (t *Total) Add(n int) {
	var carry uint64
	t.low, carry = bits.Add64(t.low, uint64(n), 0)
	t.high += carry
	if n < 0 {
		t.high-- // n is its value less 2^64
	}
}

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

// Sums are what places ask of the first limits of their options, then of their own permits, then their number.
type Sums [tracked + 2]Total

const (
	tracked   = 4
	OfPermits = tracked
	ofPlaces  = tracked + 1
)

func (s *Sums) Add(p *Place) {
	limits := p.Options[0].Limits
	for i := range min(len(limits), tracked) {
		p.counted[i] = limits[i].permits(p)
	}
	s.add(p, 1)
}

func (s *Sums) add(p *Place, sign int) {
	for i, n := range p.counted {
		s[i].Add(sign * n)
	}
	s[OfPermits].Add(sign * p.Permits)
	s[ofPlaces].Add(sign)
}

// Subtract takes off what Add added for a place.
func (s *Sums) Subtract(p *Place) {
	s.add(p, -1)
	p.counted = [tracked]int{}
}

// Resize makes a place ask for n permits.
func (s *Sums) Resize(_ int64, p *Place, n int) {
	s.Subtract(p)
	p.Permits = n
	s.Add(p)
}

// Of returns a limit's sum, or the largest if it has none.
func (s *Sums) Of(limit int) Total {
	if limit < len(s) {
		return s[limit]
	}
	return Total{high: 1}
}

// Without returns a limit's sum without the place.
func (p *Place) Without(sum Total, limit int) Total {
	switch limit {
	case OfPermits:
		sum.Add(-p.Permits)
	case ofPlaces:
		sum.Add(-1)
	default:
		if limit < tracked {
			sum.Add(-p.counted[limit])
		}
	}
	return sum
}
