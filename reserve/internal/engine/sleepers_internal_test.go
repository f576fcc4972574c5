package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Callers that leave from the middle of a queue take no memory for long, and the others keep their order.
func TestSleepersThatLeaveTheMiddle(t *testing.T) {
	var s sleepers
	var all []*sleeper
	for number := range uint64(10_000) {
		all = append(all, s.enter(number, never))
	}
	for i, e := range all {
		if i%100 != 0 {
			s.leave(e)
		}
		require.LessOrEqual(t, len(s.list)-s.head-s.left, 10_000-i+i/100)
	}
	require.LessOrEqual(t, len(s.list)-s.head, 2*100+33, "at most as many have left as are there, and 33")
	var numbers []uint64
	for _, e := range s.list[s.head:] {
		if !e.left {
			numbers = append(numbers, e.number)
		}
	}
	require.Len(t, numbers, 100)
	require.IsIncreasing(t, numbers)
	require.LessOrEqual(t, len(s.free), keptSleepers)
}
