package smooth

import (
	"math"
	"sort"
)

// A room is how much more the bucket could have held, in nanoseconds, right before a request
// took something out of it.
type room struct {
	number uint64 // of the request
	room   float64
}

// Rooms is what must be known of the requests that have gone, to know what is still there of
// permits that come back: for each number the least room at which anybody with a higher one
// went. Permits that are not taken flow over once the room is less than they are, and nowhere
// else; so of permits that come back, as many are left as the least room since. (A store
// that is filled and never more than full is Lindley's recursion, a queue's workload,
// upside down. D. V. Lindley, "The theory of queues with a single server", 1952.)
//
// A request that went at less room than those before it hides them, so what is kept is a
// rising stack.
type rooms []room

// maxRooms bounds the stack, to 16 KiB. Beyond it neighbours are merged, which loses
// permits that come back, and invents none.
const maxRooms = 1024

// push notes the room at which the request of a number, the highest so far, goes.
func (s *rooms) push(number uint64, at float64) {
	list := *s
	n := len(list)
	for n > 0 && list[n-1].room >= at {
		n--
	}
	list = list[:n]
	if n == maxRooms {
		list = list.merged()
	}
	*s = append(list, room{number, at})
}

// merged returns half as many rooms: of each two neighbours the later number, and the lower room.
func (s rooms) merged() rooms {
	for i := 0; i+1 < len(s); i += 2 {
		s[i/2] = room{s[i+1].number, s[i].room}
	}
	return s[:len(s)/2]
}

// after returns the index of the first room noted behind a number.
func (s rooms) after(number uint64) int {
	return sort.Search(len(s), func(i int) bool { return s[i].number > number })
}

// least returns the least room at which anybody behind a number went.
func (s rooms) least(number uint64) float64 {
	if i := s.after(number); i < len(s) {
		return s[i].room
	}
	return math.Inf(1)
}

// takeOff takes what came back from the request of a number off all rooms since.
func (s *rooms) takeOff(number uint64, back float64) {
	list := *s
	i := list.after(number)
	if i == len(list) {
		return
	}
	for j := i; j < len(list); j++ {
		list[j].room -= back
	}
	begin := i
	for begin > 0 && list[begin-1].room >= list[i].room {
		begin--
	}
	*s = append(list[:begin], list[i:]...)
}

// scale multiplies all rooms.
func (s rooms) scale(by float64) {
	for i := range s {
		s[i].room *= by
	}
}
