package smooth

import (
	"math"
	"sort"
)

// A queue holds the waiting requests in order, behind the latest granted ones. Sums of blocks tell in 250 ns what is
// before one of 100,000. Appending, granting the first and removing the last are O(1), amortized.
type queue struct {
	entries []entry
	sums    []int64 // of the amounts that wait, by block
	granted int     // how many entries are of granted requests
	owed    int64   // the sum of all amounts that wait
	left    int     // how many entries behind those have given up
}

// An entry is a request, and its amount in nanoseconds, or when it was granted.
type entry struct {
	number uint64
	amount int64
}

const (
	left       = math.MinInt64 // the amount of a request that has given up
	blockSize  = 256
	remembered = 64 // granted requests, at least
)

// empty: no request waits; otherwise the first has not given up.
func (q *queue) empty() bool { return q.granted == len(q.entries) }

func (q *queue) first() entry { return q.entries[q.granted] }

func (q *queue) index(number uint64) (i int, ok bool) {
	i = sort.Search(len(q.entries), func(i int) bool { return q.entries[i].number >= number })
	return i, i < len(q.entries) && q.entries[i].number == number && q.entries[i].amount != left
}

func (q *queue) before(i int) (sum int64) {
	b := i / blockSize
	for k := q.granted / blockSize; k < b; k++ {
		sum += q.sums[k]
	}
	for _, e := range q.entries[max(q.granted, b*blockSize):i] {
		if e.amount != left {
			sum += e.amount
		}
	}
	return sum
}

func (q *queue) push(e entry) {
	if q.granted > 2*remembered && (q.empty() || q.granted > len(q.entries)/2 && len(q.entries) == cap(q.entries)) {
		q.compact()
	}
	i := len(q.entries)
	if i%blockSize == 0 {
		q.sums = append(q.sums[:i/blockSize], 0)
	}
	q.entries = append(q.entries, entry{e.number, 0})
	q.add(i, e.amount)
}

func (q *queue) add(i int, more int64) {
	q.owed += more
	q.sums[i/blockSize] += more
	q.entries[i].amount += more
}

func (q *queue) pop(at int64) (amount int64) {
	amount = q.first().amount
	q.add(q.granted, -amount)
	q.entries[q.granted].amount = at
	q.granted++
	q.skip()
	return amount
}

func (q *queue) skip() {
	for ; !q.empty() && q.first().amount == left; q.left-- {
		q.granted++
	}
}

func (q *queue) leave(i int) {
	q.add(i, -q.entries[i].amount)
	q.entries[i].amount = left
	q.left++
	n := len(q.entries)
	for ; n > q.granted && q.entries[n-1].amount == left; n-- {
		q.left--
	}
	q.entries = q.entries[:n]
	q.skip()
	if q.left > remembered && q.left > (n-q.granted)/2 {
		q.compact()
	}
}

// compact drops requests that gave up, and all but the latest granted ones.
func (q *queue) compact() {
	old, first := q.entries, max(0, q.granted-remembered)
	q.entries = make([]entry, 0, 2*(len(old)-first-q.left))
	for _, e := range old[first:] {
		if e.amount != left {
			q.entries = append(q.entries, e)
		}
	}
	q.granted = len(q.entries) - (len(old) - q.granted - q.left)
	q.left = 0
	q.rescale(func(sum int64) int64 { return sum })
}

// rescale applies a rising function to each sum of waiting amounts.
func (q *queue) rescale(f func(sum int64) int64) {
	sum, scaled := int64(0), int64(0)
	q.sums = append(q.sums[:0], make([]int64, (len(q.entries)+blockSize-1)/blockSize)...)
	for i := q.granted; i < len(q.entries); i++ {
		e := &q.entries[i]
		if e.amount == left {
			continue
		}
		sum += e.amount
		e.amount = f(sum) - scaled
		scaled += e.amount
		q.sums[i/blockSize] += e.amount
	}
	q.owed = scaled
}

func (q *queue) charged() (sum int64) {
	for _, e := range q.entries[q.granted:] {
		if e.number&1 == 1 {
			sum += e.amount
		}
	}
	return sum
}
