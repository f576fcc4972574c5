package window

import (
	"math/bits"
	"sort"
)

// Neighbours granted at one moment are merged.
type request struct {
	number  uint64  // of the newest request merged into it
	permits uint64  // that were not given back
	at      int64   // on the window's clock: when it was granted, or will be as far as is known
	config  *config // by which it is granted, nil for a charge; afterwards the one of that time
}

// A ring holds requests in order: the granted, then the waiting.
type ring struct {
	list   []request // a circle; its length is a power of two
	first  int       // the oldest, in list
	length int
}

// at returns the i-th oldest request.
func (r *ring) at(i int) *request { return &r.list[(r.first+i)&(len(r.list)-1)] }

// find returns the index of a request, or the length.
func (r *ring) find(number uint64) int {
	return sort.Search(r.length, func(i int) bool { return r.at(i).number >= number })
}

func (r *ring) push(last request) {
	if r.length == len(r.list) {
		list := make([]request, max(1, 2*len(r.list)))
		n := copy(list, r.list[r.first:])
		copy(list[n:], r.list[:r.first])
		r.list, r.first = list, 0
	}
	r.length++
	*r.at(r.length - 1) = last
}

func (r *ring) drop() {
	r.first = (r.first + 1) & (len(r.list) - 1)
	r.length--
}

// A sum of permits has 128 bits: charges may exceed a window as large as an int.
type sum struct{ high, low uint64 }

func (s *sum) add(permits uint64) {
	var carry uint64
	s.low, carry = bits.Add64(s.low, permits, 0)
	s.high += carry
}

func (s *sum) plus(other sum) {
	s.add(other.low)
	s.high += other.high
}

func (s *sum) sub(permits uint64) {
	var borrow uint64
	s.low, borrow = bits.Sub64(s.low, permits, 0)
	s.high -= borrow
}

func (s *sum) exceeds(permits uint64) bool { return s.high > 0 || s.low > permits }
