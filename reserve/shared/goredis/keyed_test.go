package goredis_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/goredis"
)

// tryTogether lets 32 goroutines try to acquire one permit of each key, so often, and returns how
// many were granted.
func tryTogether(t *testing.T, k *shared.Keyed, keys, tries int) int {
	var granted, next atomic.Int64
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(keys*tries); i = next.Add(1) - 1 {
				ok, err := k.TryAcquire(context.Background(), fmt.Sprint("key ", i%int64(keys)), 1)
				if err != nil {
					t.Error(err)
				}
				if ok {
					granted.Add(1)
				}
			}
		})
	}
	all.Wait()
	return int(granted.Load())
}

// Many callers at once, on many keys, on a server that forgets its scripts.
func TestKeyedTogether(t *testing.T) {
	eachServer(t, func(t *testing.T, c *redis.Client) {
		policy := reserve.Must(pace.Bursty(0.01, pace.WithCapacity(2)))
		for range 3 {
			require.NoError(t, c.ScriptFlush(t.Context()).Err())
			require.NoError(t, c.FlushDB(t.Context()).Err())
			k, err := shared.NewKeyed(goredis.Client(c), policy, shared.WithTimeout(5*time.Second))
			require.NoError(t, err)
			require.Equal(t, 300*3, tryTogether(t, k, 300, 7), "two stored, and one prepaid")
		}
	})
}
