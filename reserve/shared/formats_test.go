package shared_test

import (
	"context"
	"encoding/hex"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/internal/server"
	"github.com/nextfree/pace/reserve/shared"
)

// A value is a store of one value, whose clock stands.
type value struct{ bytes []byte }

func (v *value) Update(_ context.Context, _ string,
	f func(now time.Time, old []byte) ([]byte, time.Duration, error),
) (err error) {
	b, _, err := f(time.Unix(1_790_000_000, 0), v.bytes)
	if err == nil && b != nil {
		v.bytes = b
	}
	return err
}

// What FORMATS.md shows is what is in a store and in Redis, and can be read.
func TestFormats(t *testing.T) {
	bucket := pace.Must(pace.TokenBucket(10, 5))
	bursty := pace.Must(pace.Bursty(10, pace.WithCapacity(5)))
	t.Run("store", func(t *testing.T) {
		micros := int64(1_790_000_000_000_000)
		v := &value{}
		l, err := shared.NewIn(v, "api", bucket, shared.FakeTime(&micros))
		require.NoError(t, err)
		_, err = l.Sell(4, 0)
		require.NoError(t, err)
		sale, err := l.Sell(3, 1e9)
		require.NoError(t, err)
		require.Equal(t, int64(200*time.Millisecond), int64(sale.Wait))
		vector := limitertest.Vector(t, "store")
		require.Equal(t, hex.EncodeToString(vector), hex.EncodeToString(v.bytes))
		l, err = shared.NewIn(&value{vector}, "api", bucket, shared.FakeTime(&micros))
		require.NoError(t, err)
		sale, err = l.Sell(1, 1e9)
		require.NoError(t, err)
		require.Equal(t, int64(300*time.Millisecond), int64(sale.Wait))
	})
	t.Run("redis", func(t *testing.T) {
		c := connect(t, server.Start(t))
		micros := int64(1_790_000_000_000_000)
		l := newShared(t, c, "api", bursty, shared.FakeTime(&micros))
		written := func(name string) {
			text, err := c.Do(t.Context(), "GET", l.Key())
			require.NoError(t, err)
			require.Equal(t, hex.EncodeToString(limitertest.Vector(t, name)), hex.EncodeToString([]byte(text.(string))))
		}
		read := func(name string, wait int64) {
			_, err := c.Do(t.Context(), "SET", l.Key(), string(limitertest.Vector(t, name)))
			require.NoError(t, err)
			sale, err := l.Sell(1, 1e9)
			require.NoError(t, err)
			require.Equal(t, wait, int64(sale.Wait))
		}
		_, err := l.Sell(2, 0)
		require.NoError(t, err)
		written("redis")
		_, err = l.Sell(5, 0)
		require.NoError(t, err)
		_, err = l.Sell(1, 1e9)
		require.NoError(t, err)
		written("redis, in debt")
		read("redis", 0)
		read("redis, in debt", int64(300*time.Millisecond))
	})
}
