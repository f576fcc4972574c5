package attime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/attime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Times of any clock, long ago, and one that steps back.
func TestAtItsTimes(t *testing.T) {
	now := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	l := attime.New(pace.Must(pace.TokenBucket(10, 2)))
	require.Equal(t, 2.0, attime.Level(l, now))
	require.True(t, attime.Take(l, now, 2))
	require.False(t, attime.Take(l, now.Add(99*time.Millisecond), 1))
	require.True(t, attime.Take(l, now.Add(100*time.Millisecond), 1))
	require.False(t, attime.Take(l, now, 1), "a step back")

	now = now.Add(100 * time.Millisecond)
	var a, b reserve.Reservation
	require.NoError(t, attime.Reserve(l, now, 1, pace.Forever, &a))
	require.NoError(t, attime.Reserve(l, now, 2, pace.Forever, &b))
	require.Equal(t, now.Add(100*time.Millisecond), attime.Ready(&a, now))
	require.Equal(t, now.Add(300*time.Millisecond), attime.Ready(&b, now))
	require.InDelta(t, -3, attime.Level(l, now), 1e-9)
	var c reserve.Reservation
	err := attime.Reserve(l, now, 1, 399*time.Millisecond, &c)
	var refused *reserve.WaitError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 400*time.Millisecond, refused.Wait)
	require.Error(t, attime.Reserve(l, now, 0, pace.Forever, &c))
	attime.Settle(&a, now, 0)
	require.Equal(t, now.Add(200*time.Millisecond), attime.Ready(&b, now))

	require.NoError(t, attime.Replace(l, now, pace.Must(pace.TokenBucket(20, 2))))
	require.Equal(t, now.Add(100*time.Millisecond), attime.Ready(&b, now), "half as long at twice the rate")
	require.Error(t, attime.Replace(l, now, nil))
	require.Equal(t, 20.0, l.Rate())
}
