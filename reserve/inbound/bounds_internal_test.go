package inbound

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A network has its share of the room and not one key more, from the moment on at which three quarters of the
// room are taken.
func TestNetworkCounts(t *testing.T) {
	const room, nearShare, farShare = 40960, 10, 640
	c := &networkCounts{crowded: room * 3 / 4, mostNear: nearShare, mostFar: farShare}
	one := client{near: 1, far: 1}
	for range nearShare {
		require.True(t, c.Admits(one, room))
		c.Count(one, 1)
	}
	require.False(t, c.Admits(one, room*3/4))
	require.True(t, c.Admits(one, room*3/4-1))
	require.True(t, c.Admits(client{}, room), "it has no address")
	c.Count(one, -1)
	require.True(t, c.Admits(one, room))

	for i := range farShare {
		a := client{near: uint16(2 + i), far: 2}
		require.True(t, c.Admits(a, room), i)
		c.Count(a, 1)
	}
	require.False(t, c.Admits(client{near: 5000, far: 2}, room))
	require.True(t, c.Admits(client{near: 5000, far: 3}, room))
}

func TestAComebackQueueIsOverOneMomentLater(t *testing.T) {
	l := &comeback{last: time.Second}
	require.False(t, l.over(time.Second))
	require.True(t, l.over(time.Second+1))
	l = &comeback{last: time.Hour, spare: time.Minute}
	require.False(t, l.over(time.Minute+lateness))
	require.True(t, l.over(time.Minute+lateness+1))
}

func TestShorten(t *testing.T) {
	text := strings.Repeat("x", 60)
	require.Equal(t, `"`+text+`"`, shorten(text))
	require.Equal(t, `"`+text+`"...`, shorten(text+"y"))
}
