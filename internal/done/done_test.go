package done_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/done"
)

func TestCause(t *testing.T) {
	require.NoError(t, done.Cause(context.Background()))
	reason := errors.New("no longer wanted")
	ctx, cancel := context.WithCancelCause(t.Context())
	require.NoError(t, done.Cause(ctx))
	cancel(reason)
	require.Equal(t, reason, done.Cause(ctx))
}

// A context of a fake clock blocks in Err until it is done.
func TestCauseDoesNotBlock(t *testing.T) {
	clock := clockwork.NewFakeClock()
	ctx, cancel := clockwork.WithTimeout(t.Context(), clock, time.Second)
	defer cancel()
	require.NoError(t, done.Cause(ctx))
	clock.Advance(time.Second)
	<-ctx.Done()
	require.ErrorIs(t, done.Cause(ctx), context.DeadlineExceeded)
}
