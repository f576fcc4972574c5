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

// Sums are what places ask of each limit of their options.
type Sums [tracked + 1]Total

// tracked is how many limits of an option have sums, and ofPermits stands for the places' own permits.
const (
	tracked   = 4
	ofPermits = tracked
)

// Add adds a place, and Remove takes it off.
func (s *Sums) Add(p *Place) {
	limits := p.Options[0].Limits
	for i := range min(len(limits), tracked) {
		p.counted[i] = limits[i].permits(p)
		s[i].Add(p.counted[i])
	}
	p.counted[tracked] = p.Permits
	s[tracked].Add(p.Permits)
}

func (s *Sums) Remove(p *Place) {
	for i, n := range p.counted {
		s[i].Add(-n)
		p.counted[i] = 0
	}
}

// Resize says that a place is for n permits from now on.
func (s *Sums) Resize(p *Place, n int) {
	for i, l := range p.Options[0].Limits {
		if i < tracked && l.Permits == 0 {
			s[i].Add(n - p.counted[i])
			p.counted[i] = n
		}
	}
	s[tracked].Add(n - p.counted[tracked])
	p.counted[tracked] = n
}

// Of returns the sum of a limit; that of one that has none is more than any.
func (s *Sums) Of(limit int) Total {
	if limit <= tracked {
		return s[limit]
	}
	return Total{high: 1}
}

// Without returns a sum without what the place asks of a limit.
func (p *Place) Without(sum Total, limit int) Total {
	if limit <= tracked {
		sum.Add(-p.counted[limit])
	}
	return sum
}

// Int returns the total, or the largest int.
func (t Total) Int() int {
	if t.high > 0 || t.low > math.MaxInt {
		return math.MaxInt
	}
	return int(t.low)
}
