package within

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDo(t *testing.T) {
	var c Calls
	failure := errors.New("failure")
	value, over, err := Do(t.Context(), &c, func() (int, error) { return 7, failure })
	require.True(t, over)
	require.Equal(t, 7, value)
	require.Equal(t, failure, err)

	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, _, err = Do(ended, &c, func() (int, error) { return 0, failure })
	require.ErrorContains(t, err, "enough")

	require.PanicsWithValue(t, "oh", func() { _, _, _ = Do(t.Context(), &c, func() (int, error) { panic("oh") }) })
	_, over, err = Do(t.Context(), &c, func() (int, error) { runtime.Goexit(); return 0, nil })
	require.True(t, over)
	require.ErrorIs(t, err, ErrAborted)
}

// Calls that hang are few: for an hour of a frozen disk, eight and one each ten seconds. When they return, all is well.
func TestHangingCallsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Calls
		thaw := make(chan struct{})
		var begun atomic.Int64
		call := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			_, over, err := Do(ctx, &c, func() (int, error) { begun.Add(1); <-thaw; panic("nobody hears this") })
			require.Equal(t, err == ErrHang, over)
			return err
		}
		for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(100 * time.Millisecond) {
			require.Error(t, call())
		}
		require.InDelta(t, 8+6, begun.Load(), 1)
		close(thaw)
		synctest.Wait()
		_, over, err := Do(t.Context(), &c, func() (int, error) { return 0, nil })
		require.True(t, over)
		require.NoError(t, err)
		require.Zero(t, c.left)
	})
}
