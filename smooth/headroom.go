package smooth

import (
	"math"
	"sort"
)

// A headroom is how much more the bucket could have held, in nanoseconds, right before a request was
// granted.
type headroom struct {
	after uint64 // the newest request granted before that one
	time  float64
}

// Headrooms bound a refund: at most the smallest headroom since the request was granted; anything
// more would have overflowed the bucket. Headroom is smallest right before a grant, so the grants
// suffice. (The level of a store that fills up is a queue's workload upside down, which is Lindley's
// recursion: D. V. Lindley, "The theory of queues with a single server", 1952.)
//
// Only the minimum matters, so pushing a smaller value discards larger ones: a monotonic stack.
type headrooms []headroom

// maxHeadrooms bounds the stack, to 16 KiB. Beyond it neighbours are merged, which loses
// refunds, and invents none.
const maxHeadrooms = 1024

// push adds the headroom right before a grant, the newest request granted before being after.
func (s *headrooms) push(after uint64, time float64) {
	list := *s
	n := len(list)
	for n > 0 && list[n-1].time >= time {
		n--
	}
	list = list[:n]
	if n == maxHeadrooms {
		list = list.merged()
	}
	*s = append(list, headroom{after, time})
}

// merged returns half as many headrooms: of each two neighbours the later number, and the smaller headroom.
func (s headrooms) merged() headrooms {
	for i := 0; i+1 < len(s); i += 2 {
		s[i/2] = headroom{s[i+1].after, s[i].time}
	}
	return s[:len(s)/2]
}

// since returns the index of the first headroom that bounds a refund of a request.
func (s headrooms) since(number uint64) int {
	return sort.Search(len(s), func(i int) bool { return s[i].after >= number })
}

// least returns the smallest headroom since a request was granted.
func (s headrooms) least(number uint64) float64 {
	if i := s.since(number); i < len(s) {
		return s[i].time
	}
	return math.Inf(1)
}

// subtract takes a refund of a request off all headrooms since.
func (s *headrooms) subtract(number uint64, refund float64) {
	list := *s
	i := list.since(number)
	if i == len(list) {
		return
	}
	for j := i; j < len(list); j++ {
		list[j].time -= refund
	}
	begin := i
	for begin > 0 && list[begin-1].time >= list[i].time {
		begin--
	}
	*s = append(list[:begin], list[i:]...)
}
