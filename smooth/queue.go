package smooth

import (
	"math"
	"slices"
)

// A queue holds the amounts, in nanoseconds, of the requests that wait, in the order in which they
// asked. It tells in O(log n) how much is to be paid before one of them goes; appending, and
// letting the first one go, are O(1), amortized.
//
// It is a Fenwick tree (P. Fenwick, "A new data structure for cumulative frequency tables",
// 1994): tree[i] is the sum of the last i&-i of the first i amounts, counted from 1. Requests that
// have gone stay in front until the memory is needed. It takes 8 bytes for each that waits, and 8
// more once times are noted.
type queue struct {
	tree  []int64 // 0 is not used
	first uint64  // the number of the amount at index 1
	gone  int     // how many, from the front, have gone
	paid  int64   // the sum of those
	owed  int64   // the sum of those that wait
	live  int     // in front of this index nobody waits for an amount

	times []int64 // by index, if noted; and beside times:
	noted bool
}

const (
	nothing = math.MinInt64 + iota // is known
	left                           // it has given up
	charged                        // it has been used already, and goes as soon as it is the first
)

const (
	remembered = 64   // so many that have gone are, at least, where their times are noted
	keptEmpty  = 1024 // so many amounts' memory is kept when nobody waits
)

func lowest(i int) int { return i & -i }

// size returns how many amounts there are, those that have gone included.
func (q *queue) size() int { return max(0, len(q.tree)-1) }

func (q *queue) empty() bool { return q.gone+1 >= len(q.tree) }

// waiting returns how many wait.
func (q *queue) waiting() uint64 { return uint64(q.size() - q.gone) }

// index returns where the amount of a number is, or 0.
func (q *queue) index(number uint64) int {
	if i := number - q.first; i < uint64(q.size()) { // false, too, if the number is smaller
		return int(i) + 1
	}
	return 0
}

// before returns what is to be paid before the one at an index may go.
func (q *queue) before(i int) (sum int64) {
	for i--; i > 0; i -= lowest(i) {
		sum += q.tree[i]
	}
	return sum - q.paid
}

// amount returns what the one at an index has to pay.
func (q *queue) amount(i int) int64 {
	sum, stop := q.tree[i], i-lowest(i)
	for i--; i > stop; i -= lowest(i) {
		sum -= q.tree[i]
	}
	return sum
}

// head returns the index of the first that waits for an amount, if there is one: others have given up,
// or cost nothing. Somebody must wait.
func (q *queue) head() int {
	q.live = max(q.live, q.gone+1)
	for q.live < q.size() && q.amount(q.live) == 0 {
		q.live++
	}
	return q.live
}

// push appends the amount of a number. Numbers are consecutive while somebody waits; those
// between have gone at once.
func (q *queue) push(number uint64, amount int64) {
	gap := number - q.first - uint64(q.size())
	if gap > remembered || len(q.tree) == 0 {
		q.reset(number)
		gap = 0
	}
	for ; gap > 0; gap-- {
		q.add(0)
		q.pop(nothing)
	}
	if q.gone > q.size()/2+remembered && (len(q.tree) == cap(q.tree) || q.empty()) {
		q.rebuild(func(sum int64) int64 { return sum })
	}
	q.add(amount)
}

func (q *queue) add(amount int64) {
	i := len(q.tree)
	q.owed += amount
	for j, stop := i-1, i-lowest(i); j > stop; j -= lowest(j) {
		amount += q.tree[j]
	}
	if len(q.tree) == cap(q.tree) { // append would grow a long queue by a quarter only
		q.tree = slices.Grow(q.tree, max(8, len(q.tree)))
	}
	q.tree = append(q.tree, amount)
	if q.noted {
		q.times = append(q.times, nothing)
	}
}

// pop lets the first that waits go, at the given time.
func (q *queue) pop(went int64) {
	q.gone++
	amount := q.amount(q.gone)
	q.paid += amount
	q.owed -= amount
	if q.noted {
		q.times[q.gone] = went
	}
}

// reduce takes something off the amount of one that waits.
func (q *queue) reduce(i int, less int64) {
	q.owed -= less
	for ; i < len(q.tree); i += lowest(i) {
		q.tree[i] -= less
	}
}

// time returns what is noted of the one at an index: of one that waits when it asked, where that
// matters, or what it is; of one that has gone when it went.
func (q *queue) time(i int) int64 {
	if !q.noted {
		return nothing
	}
	return q.times[i]
}

// note notes something of the one at an index, and from now on when each of those goes that wait.
func (q *queue) note(i int, t int64) {
	for q.noted = true; len(q.times) < len(q.tree); {
		q.times = append(q.times, nothing)
	}
	q.times[i] = t
}

// reset forgets all, when nobody waits, and begins with a number.
func (q *queue) reset(first uint64) {
	tree, times := q.tree, q.times
	if cap(tree) > keptEmpty {
		tree, times = nil, nil
	}
	*q = queue{tree: append(tree[:0], 0), times: times[:0], first: first}
}

// rebuild forgets those that have gone, but for the latest, and has each sum of amounts, counted from
// the first that waits, be what the function says. That must not fall as sums rise.
func (q *queue) rebuild(scale func(sum int64) int64) {
	old, kept := *q, min(q.gone, remembered)
	*q = queue{first: old.first + uint64(old.gone-kept), noted: old.noted}
	q.tree = make([]int64, 1, 2*(old.size()-old.gone+kept)+1)
	if q.noted {
		q.times = make([]int64, 1, cap(q.tree))
	}
	var sum int64
	for i := old.gone - kept + 1; i <= old.size(); i++ {
		if i > old.gone {
			sum += old.amount(i)
		}
		q.add(scale(sum) - q.owed)
		if q.noted {
			q.times[len(q.times)-1] = old.times[i]
		}
	}
	q.gone = kept
}
