package reserve_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// A panickingContext panics when it is asked for the second time whether it is over.
type panickingContext struct {
	context.Context
	asked int
}

func (c *panickingContext) Done() <-chan struct{} {
	if c.asked++; c.asked == 2 {
		panic(errGone)
	}
	return c.Context.Done()
}

// A context that panics while its caller sleeps leaves the limiter unlocked, its place to those behind, and nobody
// asleep for longer.
func TestAContextThatPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := reserve.Must(pace.NewBursty(1, pace.WithBurst(0)))
		require.True(t, l.TryAcquire(5))
		require.PanicsWithValue(t, errGone, func() { _, _ = l.Acquire(&panickingContext{Context: t.Context()}, 3) })
		waited, err := l.Acquire(ctx, 1)
		require.NoError(t, err)
		require.Equal(t, 5*s, waited)
	})
}
