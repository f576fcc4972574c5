package shared_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/redis"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/window"
)

// Redis keeps a key for as long as the slowest of its versions need to fill the store, whichever of them asked last.
func TestKeyLivesAsLongAsAnyVersionNeeds(t *testing.T) {
	eachServer(t, func(t *testing.T, c *redis.Client) {
		for what, versions := range map[string][2]*reserve.Policy{
			"a larger burst":  {reserve.Must(pace.TokenBucket(100, 1000)), reserve.Must(pace.TokenBucket(100, 10))},
			"a lower rate":    {reserve.Must(pace.TokenBucket(1, 10)), reserve.Must(pace.TokenBucket(100, 10))},
			"another measure": {reserve.Must(pace.Bursty(1, pace.WithBurst(10*time.Second))), reserve.Must(pace.TokenBucket(100, 10))},
		} {
			for _, first := range []int{0, 1} {
				require.NoError(t, flush(t, c))
				for _, i := range []int{first, 1 - first, 1 - first} {
					l := newShared(t, place{Client: c}, "api", versions[i])
					_, err := l.ReserveWithin(t.Context(), 10, 0) // granted or refused
					if err != nil {
						require.IsType(t, &reserve.WaitError{}, err)
					}
				}
				left, err := c.Do(t.Context(), "PTTL", "pace:{api}")
				require.NoError(t, err)
				require.Greater(t, left, int64(9900), what)
			}
		}
	})
}

func flush(t *testing.T, c *redis.Client) error {
	_, err := c.Do(t.Context(), "FLUSHALL")
	return err
}

// After a change of the algorithm the error says what helps, and Reset does it.
func TestResetOfAnotherAlgorithm(t *testing.T) {
	bucket := reserve.Must(pace.TokenBucket(10, 5))
	const advice = "Reset makes the key a new limiter's, or delete it"
	refused := func(t *testing.T, l *shared.Limiter) {
		var wrong *shared.ConfigError
		_, err := l.TryAcquire(t.Context(), 1)
		require.ErrorAs(t, err, &wrong)
		require.ErrorContains(t, err, advice)
		require.NoError(t, l.Reset(t.Context()))
		for range 5 {
			ok, err := l.TryAcquire(t.Context(), 1)
			require.NoError(t, err)
			require.True(t, ok)
		}
	}
	t.Run("store", func(t *testing.T) {
		store := shared.Memory()
		w := reserve.Must(shared.NewIn(store, "api", reserve.Must(window.Policy(5, time.Second))))
		require.NoError(t, w.Wait(t.Context()))
		refused(t, reserve.Must(shared.NewIn(store, "api", bucket)))
	})
	eachServer(t, func(t *testing.T, c *redis.Client) {
		for _, is := range [][]any{{"SET", "pace:{api}", "a window's"}, {"LPUSH", "pace:{api}", "a list's"}} {
			require.NoError(t, flush(t, c))
			_, err := c.Do(t.Context(), is...)
			require.NoError(t, err)
			refused(t, newShared(t, place{Client: c}, "api", bucket))
		}
	})
}
