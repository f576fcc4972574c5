package reserve_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// A refusal by one of several limiters says which one it was, on arrival and during the wait, and a limiter that is
// asked alone names nothing.
func TestRefusalNamesItsLimit(t *testing.T) {
	slow := reserve.Must(pace.NewBursty(1))
	_, err := slow.Acquire(ctx, 8)
	require.NoError(t, err)
	fast := reserve.Must(pace.NewBursty(1000))
	all := reserve.All(fast, slow, fast)

	_, err = all.ReserveWithin(ctx, 1, 2*time.Second)
	var refusal *reserve.WaitError
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, "2 of 3", refusal.Limit)
	require.Contains(t, err.Error(), `for limit "2 of 3" is longer than the longest allowed, 2s`)

	_, err = reserve.All(slow).ReserveWithin(ctx, 1, 2*time.Second)
	require.ErrorAs(t, err, &refusal)
	require.Empty(t, refusal.Limit, "there is only one")

	// The inner All knows more than the outer one.
	_, err = reserve.All(fast, all).ReserveWithin(ctx, 1, 2*time.Second)
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, "2 of 3", refusal.Limit)
}

func TestRefusedWaitNamesItsLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		free, paused := reserve.Must(pace.NewBursty(1)), reserve.Must(pace.NewBursty(1))
		r, err := reserve.All(free, paused).ReserveWithin(ctx, 1, reserve.Forever)
		require.NoError(t, err)
		paused.PauseUntil(time.Now().Add(time.Minute))
		_, err = paused.Acquire(ctx, 1)
		require.NoError(t, err)
		soon, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		later, err := reserve.All(free, paused).ReserveWithin(ctx, 1, reserve.Forever)
		require.NoError(t, err)
		paused.PauseUntil(time.Now().Add(time.Minute))
		var refusal *reserve.WaitError
		require.ErrorAs(t, later.Wait(soon), &refusal)
		require.Equal(t, "2 of 2", refusal.Limit)
		r.Cancel()
	})
}

// A Reserver's own error stays as it is: it may be one value for all callers.
func TestNamingChangesNoError(t *testing.T) {
	shared := &reserve.WaitError{Wait: time.Second}
	_, err := reserve.All(refusing{shared}, refusing{shared}).ReserveWithin(ctx, 1, 0)
	require.NotSame(t, shared, err)
	require.Empty(t, shared.Limit)
}

type refusing struct{ err error }

func (r refusing) ReserveWithin(context.Context, int, time.Duration) (reserve.Reservation, error) {
	return reserve.Reservation{}, r.err
}
