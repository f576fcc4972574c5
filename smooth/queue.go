package smooth

import (
	"math"
	"slices"
	"sort"
)

// A queue holds the amounts, in nanoseconds, that the waiting requests take out of the bucket, in the
// order in which they asked. It tells in O(log n) how much is to be paid before one of them is granted;
// appending, granting the first and removing the last are O(1), amortized.
//
// It is a Fenwick tree (P. Fenwick, "A new data structure for cumulative frequency tables",
// 1994): tree[i] is the sum of the last i&-i of the first i amounts, counted from 1. Requests that were
// granted stay in front until the memory is needed. A queue takes 8 bytes for each that waits, 8
// more once times are noted, and 8 more once requests have left it before others.
type queue struct {
	tree    []int64  // 0 is not used
	first   uint64   // the number at index 1,
	numbers []uint64 // and all, by index, if they are not consecutive
	granted int      // how many, from the front
	paid    int64    // the sum of those
	owed    int64    // the sum of those that wait
	left    int      // how many of those that wait have been given up

	times []int64 // by index, if noted; and beside times:
	noted bool
}

const (
	nothing = math.MinInt64 + iota // is known
	left                           // it was given up
	charged                        // its permits were used already, so it is granted as soon as it is the first
)

const (
	remembered = 64   // so many granted requests are, at least, where their times are noted
	keptEmpty  = 1024 // so many amounts' memory is kept when none waits
)

func lowest(i int) int { return i & -i }

// size returns how many amounts there are, those of granted requests included.
func (q *queue) size() int { return max(0, len(q.tree)-1) }

func (q *queue) empty() bool { return q.granted+1 >= len(q.tree) }

// number returns the number of the request at an index.
func (q *queue) number(i int) uint64 {
	if q.numbers != nil {
		return q.numbers[i]
	}
	return q.first + uint64(i-1)
}

// index returns where the amount of a number is, or 0.
func (q *queue) index(number uint64) int {
	if q.numbers != nil {
		i := 1 + sort.Search(q.size(), func(i int) bool { return q.numbers[i+1] >= number })
		if i > q.size() || q.numbers[i] != number {
			return 0
		}
		return i
	}
	if i := number - q.first; i < uint64(q.size()) { // false, too, if the number is smaller
		return int(i) + 1
	}
	return 0
}

// before returns what is to be paid before the one at an index may be granted.
func (q *queue) before(i int) (sum int64) {
	for i--; i > 0; i -= lowest(i) {
		sum += q.tree[i]
	}
	return sum - q.paid
}

// amount returns what the one at an index takes.
func (q *queue) amount(i int) int64 {
	sum, stop := q.tree[i], i-lowest(i)
	for i--; i > stop; i -= lowest(i) {
		sum -= q.tree[i]
	}
	return sum
}

// push appends the amount of a number, the highest so far.
func (q *queue) push(number uint64, amount int64) {
	if len(q.tree) == 0 || q.empty() && (!q.noted || number-q.number(q.size()) > remembered) {
		q.reset(number)
	}
	if q.granted > q.size()/2+remembered && (len(q.tree) == cap(q.tree) || q.empty()) {
		q.compact(q.granted-remembered, false)
	}
	if number != q.first+uint64(q.size()) {
		q.list()
	}
	i := len(q.tree)
	q.owed += amount
	for j, stop := i-1, i-lowest(i); j > stop; j -= lowest(j) {
		amount += q.tree[j]
	}
	if len(q.tree) == cap(q.tree) { // append would grow a long queue by a quarter only
		q.tree = slices.Grow(q.tree, max(8, len(q.tree)))
	}
	q.tree = append(q.tree, amount)
	if q.numbers != nil {
		q.numbers = append(q.numbers, number)
	}
	if q.noted {
		q.times = append(q.times, nothing)
	}
}

// list makes a list of the numbers, which have been consecutive.
func (q *queue) list() {
	if q.numbers == nil {
		q.numbers = make([]uint64, len(q.tree), cap(q.tree))
		for i := 1; i < len(q.tree); i++ {
			q.numbers[i] = q.first + uint64(i-1)
		}
	}
}

// pop grants the first that waits, at the given time, and returns its amount.
func (q *queue) pop(at int64) int64 {
	q.granted++
	amount := q.amount(q.granted)
	q.paid += amount
	q.owed -= amount
	if q.noted {
		if q.times[q.granted] == left {
			q.left--
			at = left
		}
		q.times[q.granted] = at
	}
	return amount
}

// reduce takes something off the amount of one that waits.
func (q *queue) reduce(i int, less int64) {
	q.owed -= less
	for ; i < len(q.tree); i += lowest(i) {
		q.tree[i] -= less
	}
}

// leave marks one that waits as given up. Those that have nothing to pay any more are cut off at
// the end of the queue, and in the middle as soon as they are the most.
func (q *queue) leave(i int) {
	q.note(i, left)
	q.left++
	for n := q.size(); n > q.granted && q.times[n] == left && q.amount(n) == 0; n-- {
		q.list()
		q.tree, q.numbers, q.times = q.tree[:n], q.numbers[:n], q.times[:n]
		q.left--
	}
	if q.left > remembered && q.left > (q.size()-q.granted)/2 {
		q.compact(max(0, q.granted-remembered), true)
	}
}

// time returns what is noted of the one at an index: of one that waits when it asked, where that
// matters, or what it is; of a granted one when it was granted.
func (q *queue) time(i int) int64 {
	if !q.noted {
		return nothing
	}
	return q.times[i]
}

// note notes something of the one at an index, and from now on when each of those that wait is granted.
func (q *queue) note(i int, t int64) {
	q.noteAll()
	q.times[i] = t
}

func (q *queue) noteAll() {
	for q.noted = true; len(q.times) < len(q.tree); {
		q.times = append(q.times, nothing)
	}
}

// reset forgets all, when none waits, and begins with a number.
func (q *queue) reset(first uint64) {
	tree, times := q.tree, q.times
	if cap(tree) > keptEmpty {
		tree, times = nil, nil
	}
	*q = queue{tree: append(tree[:0], 0), times: times[:0], first: first}
}

// compact forgets so many from the front, and, with gaps, those that were given up and have nothing
// to pay.
func (q *queue) compact(forget int, gaps bool) {
	if gaps {
		q.list()
	}
	old := *q
	*q = queue{first: old.number(forget + 1), granted: old.granted - forget, owed: old.owed, noted: old.noted}
	q.tree = make([]int64, 1, 2*(old.size()-forget)+1)
	for i := forget + 1; i <= old.size(); i++ {
		sum := int64(0) // in place of the amount, as far as rescale: the sum of all that wait up to this one
		if i > old.granted {
			sum = old.before(i + 1)
			if gaps && old.times[i] == left && old.amount(i) == 0 {
				continue
			}
			if old.time(i) == left {
				q.left++
			}
		}
		q.tree = append(q.tree, sum)
		if old.numbers != nil {
			if q.numbers == nil {
				q.numbers = make([]uint64, 1, cap(q.tree))
			}
			q.numbers = append(q.numbers, old.numbers[i])
		}
		if q.noted {
			if q.times == nil {
				q.times = make([]int64, 1, cap(q.tree))
			}
			q.times = append(q.times, old.times[i])
		}
	}
	q.differences()
}

// rescale has each sum of amounts, counted from the first that waits, be what the function says. That
// must not fall as sums rise.
func (q *queue) rescale(f func(sum int64) int64) {
	for i := 1; i < len(q.tree); i++ {
		q.tree[i] += q.tree[i-lowest(i)]
	}
	for i := 1; i < len(q.tree); i++ {
		if i <= q.granted {
			q.tree[i] = 0
		} else {
			q.tree[i] = f(q.tree[i] - q.paid)
		}
	}
	q.paid, q.owed = 0, 0
	if !q.empty() {
		q.owed = q.tree[q.size()]
	}
	q.differences()
}

// differences makes the tree of a list of sums.
func (q *queue) differences() {
	for i := len(q.tree) - 1; i > 0; i-- {
		q.tree[i] -= q.tree[i-lowest(i)]
	}
}
