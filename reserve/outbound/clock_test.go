package outbound

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// windowsOf has a client make a call every second when it may, at a server that allows 10 in each minute of its own clock,
// and does not tell its time. It returns the longest stop of each window, and how many calls were refused.
func windowsOf(k *serverClock, begin time.Time, off func(time.Time) time.Duration, windows int) (stops []time.Duration, refused int) {
	now, end, left := begin, time.Time{}, 0
	stop := time.Duration(0)
	for len(stops) < windows {
		local := now.Add(off(now)) // the server's time
		if !local.Before(end) || end.Sub(local) > time.Minute {
			if !end.IsZero() {
				stops = append(stops, stop)
			}
			end, left, stop = local.Truncate(time.Minute).Add(time.Minute), 10, 0
		}
		l := reply.Limit{Left: float64(max(0, left-1)), Ends: end.Sub(now), Undated: true}
		bad := left == 0
		if left = max(0, left-1); left == 0 {
			l.Stop = l.Ends
		}
		if l.Ends > 0 { // else nothing is read from it
			k.correct(&l, now, now, bad)
		}
		if bad {
			refused++
		}
		wait := max(time.Second, min(l.Stop, 5*time.Minute))
		stop = max(stop, wait)
		now = now.Add(wait)
	}
	return stops, refused
}

func TestServerClock(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 25, 0, time.UTC)
	always := func(d time.Duration) func(time.Time) time.Duration {
		return func(time.Time) time.Duration { return d }
	}
	t.Run("right", func(t *testing.T) {
		stops, refused := windowsOf(new(serverClock), begin.Add(-22*time.Second), always(0), 5)
		require.Equal(t, 1, refused, "when half a minute was over; then it is known")
		for _, stop := range stops[1:] {
			require.Equal(t, 51*time.Second, stop.Round(time.Second))
		}
	})
	t.Run("an hour ahead", func(t *testing.T) {
		stops, refused := windowsOf(new(serverClock), begin, always(time.Hour), 20)
		require.Equal(t, untried, stops[0])
		for _, stop := range stops[2:] {
			require.LessOrEqual(t, stop, 53*time.Second, "%v", stops)
		}
		require.LessOrEqual(t, refused, 65, "one window, in which this client asks each second, and a few more")
	})
	t.Run("set right", func(t *testing.T) {
		k := new(serverClock)
		stops, _ := windowsOf(k, begin, func(now time.Time) time.Duration {
			if now.After(begin.Add(10 * time.Minute)) {
				return 0
			}
			return time.Hour
		}, 20)
		require.False(t, k.ahead)
		require.Equal(t, 51*time.Second, stops[19].Round(time.Second))
	})
}
