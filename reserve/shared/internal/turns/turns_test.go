package turns

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns Turns
		leave, err := turns.Take(t.Context(), "a")
		require.NoError(t, err)
		other, err := turns.Take(t.Context(), "b")
		require.NoError(t, err, "another key")
		other()

		var order []int
		for i := range 3 {
			go func() {
				leave, err := turns.Take(context.Background(), "a")
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i)
				leave()
			}()
			synctest.Wait()
		}
		require.Empty(t, order, "somebody has the turn")

		over := errors.New("over")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(over)
		_, err = turns.Take(ctx, "a")
		require.ErrorIs(t, err, over)

		leave()
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2}, order)
		require.Empty(t, turns.keys)
	})
}
