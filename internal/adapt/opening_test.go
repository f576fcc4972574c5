package adapt

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// open plays n accepted calls, one a tenth of a second, and one that is refused. It returns the time of the refusal.
func open(r *Rate, n int, stop time.Duration) time.Time {
	now := time.Unix(1000, 0)
	r.Open()
	for range n {
		r.Sent(now, 1)
		r.Accepted(now.Add(time.Millisecond), now, 1)
		now = now.Add(time.Second / 10)
	}
	r.Sent(now, 1)
	r.Refused(now, now, now.Add(stop), false)
	return now
}

func acceptedAt(r *Rate, now time.Time) float64 {
	r.Sent(now, 1)
	r.Accepted(now, now, 1)
	return r.Now()
}

func TestNothingRefused(t *testing.T) {
	r := New(math.Inf(1))
	r.Open()
	for i := range 1000 {
		acceptedAt(&r, time.Unix(int64(i), 0))
	}
	require.True(t, r.Unknown())
	require.False(t, r.Probes(), "nobody wants to know")
	require.Equal(t, math.Inf(1), r.Now())
}

// What follows a first refusal tells a bucket from a window and from a block.
func TestAfterTheFirstRefusal(t *testing.T) {
	for name, c := range map[string]struct {
		calls int
		stop  time.Duration
		after time.Duration
		want  float64
	}{
		"a bucket":                                     {30, 0, 200 * time.Millisecond, firstRate},
		"a bucket that says 1 s":                       {30, time.Second, 1100 * time.Millisecond, firstRate},
		"600 in a minute":                              {600, 0, time.Minute, 600.5 / 120},
		"the same, and it says how long":               {600, time.Minute, time.Minute, 600.5 / 120},
		"a block after 5 calls":                        {5, 0, 30 * time.Second, gentle},
		"one that says nothing is accepted for 10 min": {5, 10 * time.Minute, 10 * time.Minute, gentle},
	} {
		r := New(math.Inf(1))
		refused := open(&r, c.calls, c.stop)
		require.False(t, r.Unknown(), name)
		require.InDelta(t, c.want, acceptedAt(&r, refused.Add(c.after)), 0.05, name)
	}

	r := New(math.Inf(1)) // a block that the block itself has found out
	refused := open(&r, 5, 0)
	r.Blocked(refused.Add(time.Minute), time.Minute)
	require.InDelta(t, gentle, r.Now(), 1e-9)
	require.InDelta(t, gentle, acceptedAt(&r, refused.Add(time.Minute)), 0.05, "once")
}

// A rate that a server states holds from its response on.
func TestOpenUntilTheServerStatesARate(t *testing.T) {
	r := New(math.Inf(1))
	r.Open()
	now := time.Unix(1000, 0)
	r.Sent(now, 1)
	r.Said(now, now, 50, 0, false)
	require.InDelta(t, 49, r.Now(), 1e-9)
}
