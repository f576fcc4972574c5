package pace_test

import (
	"context"
	"testing"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// A bucket that takes centuries to fill is refused: of 20,002 permits at 1e-6/s, 15,390 stayed charged after a Cancel.
// What is given back to the slowest one that is allowed is there again.
func TestSlowBucket(t *testing.T) {
	_, err := pace.NewTokenBucket(1e-6, 1e6)
	require.EqualError(t, err, "pace: capacity is 1e+06; want what the rate fills in 146 years at most")
	require.ErrorAs(t, err, new(*reserve.ValueError))
	l := reserve.Must(pace.NewTokenBucket(1e-6, 4600, reserve.WithClock(clockwork.NewFakeClock())))
	r, err := l.Reserve(context.Background(), 4000)
	require.NoError(t, err)
	r.Cancel()
	require.InDelta(t, 4600, l.Stored(), 1e-3)
}
