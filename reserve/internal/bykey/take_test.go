package bykey_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
	"github.com/nextfree/pace/reserve/window"
)

// Permits that are used in any case leave a key compact. Its outlook is that of a plain limiter after the same requests,
// also when the key has grown meanwhile, and a reservation gives back exactly.
func TestTake(t *testing.T) {
	b := bursty(10, 100, pace.WithCapacity(8), reserve.WithStored(8))
	plain := pace.Must(pace.NewBursty(10, pace.WithCapacity(8), reserve.WithStored(8), reserve.WithClock(b.FakeClock)))
	take := func(n int, used bool) *reserve.Reservation {
		t.Helper()
		taken, err := inside(b.Limiters).Take(ctx, "a", n, 0, used)
		require.NoError(t, err)
		require.True(t, plain.TryAcquire(n))
		left, known := taken.Outlook()
		require.True(t, known)
		require.Equal(t, (*engine.Limiter)(plain).Outlook(), left)
		return &taken.Reservation
	}
	r := take(1, true)
	require.Zero(t, r.Permits(), "there is nothing to give back")
	take(2, true)
	require.Zero(t, b.Promoted())
	r = take(3, false)
	require.Equal(t, 3, r.Permits())
	require.Equal(t, 1, b.Promoted())
	r.Cancel()
	require.Equal(t, 5., b.one("a").Stored(), "the three have come back")
	require.True(t, b.TryAcquire("a", 3))
	require.Equal(t, 2, take(2, true).Permits(), "a whole limiter makes reservations")

	_, err := inside(b.Limiters).Take(ctx, "a", 0, 0, true)
	require.ErrorAs(t, err, new(*reserve.ValueError))
	b.TryAcquire("a", 100)
	taken, err := inside(b.Limiters).Take(ctx, "a", 1, 0, true)
	require.ErrorAs(t, err, new(*reserve.WaitError))
	_, known := taken.Outlook()
	require.False(t, known)
}

// A window's limiter is a whole one from the start.
func TestTakeOfAWindow(t *testing.T) {
	p := newPlans(func(on reserve.Option) (*reserve.Policy, error) { return window.Policy(5, s, on) })
	taken, err := inside(p.Limiters).Take(ctx, "a", 2, 0, true)
	require.NoError(t, err)
	left, known := taken.Outlook()
	require.True(t, known)
	require.Equal(t, 3., left.Stored)
}
