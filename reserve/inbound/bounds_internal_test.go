package inbound

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A network has its share of the room and not one key more, from the moment on at which three quarters of the
// room are taken.
func TestNetworkCounts(t *testing.T) {
	const room, nearShare, farShare = 40960, 10, 640
	c := newNetworkCounts(addressIn[netip.Addr](), room)
	one := netip.MustParseAddr("10.0.0.1")
	for range nearShare {
		require.True(t, c.Admits(one, room))
		c.Count(one, 1)
	}
	require.False(t, c.Admits(one, room*3/4))
	require.True(t, c.Admits(one, room*3/4-1))
	c.Count(one, -1)
	require.True(t, c.Admits(one, room))

	for i := range farShare {
		a := netip.AddrFrom4([4]byte{11, 0, byte(i), 1})
		require.True(t, c.Admits(a, room), i)
		c.Count(a, 1)
	}
	require.False(t, c.Admits(netip.MustParseAddr("11.0.200.1"), room))
	require.True(t, c.Admits(netip.MustParseAddr("12.0.200.1"), room))
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
