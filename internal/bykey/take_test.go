package bykey_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/reserve"
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

// A compact key refuses with the errors of a plain limiter, and stays compact.
func TestRefusedKeyIsCompact(t *testing.T) {
	gone, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("gone"))
	b := bursty(10, 100, reserve.WithMaxWait(2*time.Second))
	plain := pace.Must(pace.NewBursty(10, reserve.WithMaxWait(2*time.Second), reserve.WithClock(b.FakeClock)))
	soon, stop := clockwork.WithTimeout(ctx, b.FakeClock, 200*time.Millisecond)
	defer stop()
	require.True(t, b.TryAcquire("a", 15))
	require.True(t, plain.TryAcquire(15))
	for i, c := range []struct {
		ctx     context.Context
		n       int
		maxWait time.Duration
	}{{ctx, 0, 0}, {gone, 0, 0}, {gone, 1, 0}, {gone, 1, time.Hour}, {ctx, 1, -1}, {ctx, 1, time.Second}, {soon, 1, time.Hour}} {
		_, want := plain.ReserveWithin(c.ctx, c.n, c.maxWait)
		require.Error(t, want)
		_, err := b.ReserveWithin(c.ctx, "a", c.n, c.maxWait)
		require.Equal(t, want, err, i)
		require.Zero(t, b.Promoted(), i)
	}
	_, err := b.ReserveWithin(ctx, "a", 1, time.Hour)
	require.NoError(t, err)
	require.Equal(t, 1, b.Promoted())
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
