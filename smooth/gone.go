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

// Rooms tell how many of the permits that come back would still be there: for each number the
// least room at which any request with a higher number went. Permits that were never taken flow
// over as soon as the room is less than they are, and room is least right before a request goes;
// so as many are left as the least room since. (The level of a store that fills up is a queue's
// workload upside down, which is Lindley's recursion: D. V. Lindley, "The theory of queues with a
// single server", 1952.)
//
// A request that went at less room than those before it hides them, so a rising stack is enough.
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
