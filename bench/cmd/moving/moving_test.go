package main

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMeasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := measure(t.Context(), false, 4*time.Second, 100)
		require.NoError(t, err)
		require.InDelta(t, callsPerSecond, r.calls, 1)
		require.Zero(t, r.settlements)
		require.Zero(t, r.p99) // in a bubble nobody is late
	})
	synctest.Test(t, func(t *testing.T) {
		r, err := measure(t.Context(), true, 4*time.Second, 100)
		require.NoError(t, err)
		require.Equal(t, r.calls, r.settlements)
		require.GreaterOrEqual(t, r.calls, callsPerSecond/2-1.)
	})
}

func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, run(ctx, &bytes.Buffer{}, time.Minute, 1, 10), context.DeadlineExceeded)
	})
}

func TestMedians(t *testing.T) {
	require.Equal(t, result{2, 5, 8, 11, 14}, medians([]result{{1, 5, 8, 10, 99}, {3, 4, 7, 11, 14}, {2, 6, 9, 12, 13}}))
}

func TestGoal(t *testing.T) {
	require.Equal(t, []string{"CPU", "2.00", "2.00", "yes"}, goal("CPU", 2, 2))
	require.Equal(t, "no", goal("CPU", 2, 2.01)[3])
}
