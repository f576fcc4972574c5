package smooth

import "sort"

// A headroom is how much more the bucket could have held at a moment, in nanoseconds; or the store beside it, as a part
// of its capacity.
type headroom[T int64 | float64] struct {
	after uint64 // the newest request granted before
	room  T
}

// Headrooms bound a refund: more than the smallest since the grant would have overflowed the bucket. It is smallest
// before a grant, and where the limit changes. (A store's level is a queue's workload upside down: D. V. Lindley, "The
// theory of queues with a single server", 1952.) A smaller value discards larger ones before it.
type headrooms[T int64 | float64] []headroom[T]

// maxHeadrooms bounds the stack to 16 KiB. Beyond it neighbours are merged: refunds may be smaller.
const maxHeadrooms = 1024

func (s *headrooms[T]) push(h headroom[T]) {
	list := *s
	n := len(list)
	for n > 0 && list[n-1].room >= h.room {
		n--
	}
	if n > 0 && list[n-1].after >= h.after {
		return // a smaller one bounds more
	}
	list = list[:n]
	if n == maxHeadrooms {
		list = list.merged()
	}
	*s = append(list, h)
}

func (s headrooms[T]) merged() headrooms[T] {
	for i := 0; i+1 < len(s); i += 2 {
		s[i/2] = headroom[T]{s[i+1].after, s[i].room}
	}
	return s[:len(s)/2]
}

// refund takes a refund of a request off the headrooms since, as far as they go, and returns how far.
func (s *headrooms[T]) refund(number uint64, refund T) T {
	list := *s
	i := sort.Search(len(list), func(i int) bool { return list[i].after >= number })
	if i == len(list) {
		return refund
	}
	refund = min(refund, list[i].room)
	for j := i; j < len(list); j++ {
		list[j].room -= refund
	}
	begin := i
	for begin > 0 && list[begin-1].room >= list[i].room {
		begin--
	}
	*s = append(list[:begin], list[i:]...)
	return refund
}
