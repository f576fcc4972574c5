package goredis_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/server"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
)

// A Sentinel makes a replica the master, since the old one is dead or because it is told to: the
// limiter is back soon after, no call hangs, and what was not replicated is at most a store.
func TestSentinel(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, master *server.Server, sentinel *redis.SentinelClient){
		"killed": func(_ *testing.T, master *server.Server, _ *redis.SentinelClient) { master.Kill() },
		"told to": func(t *testing.T, _ *server.Server, sentinel *redis.SentinelClient) {
			// It refuses until it has heard enough of the replica: NOGOODSLAVE.
			told := func() bool { return sentinel.Failover(t.Context(), "pace").Err() == nil }
			require.Eventually(t, told, 60*time.Second, 100*time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			master := server.Start(t)
			replica := server.Replica(t, master)
			watch := server.Sentinel(t, master)
			sentinel := redis.NewSentinelClient(&redis.Options{Addr: watch.Addr})
			t.Cleanup(func() { _ = sentinel.Close() })
			require.Eventually(t, func() bool {
				known, err := sentinel.Replicas(t.Context(), "pace").Result()
				return err == nil && len(known) == 1
			}, 30*time.Second, 50*time.Millisecond)
			c := redis.NewFailoverClient(&redis.FailoverOptions{
				MasterName: "pace", SentinelAddrs: []string{watch.Addr}, ContextTimeoutEnabled: true, DialerRetries: 1,
			})
			t.Cleanup(func() { _ = c.Close() })
			// An hour for a store of 10: the grants can be counted.
			l := newShared(t, c, "sentinel", reserve.Must(pace.Bursty(10.0/3600, pace.WithBurst(time.Hour))), shared.WithTimeout(timeout))
			granted, longest := 0, time.Duration(0)
			try := func() error {
				begin := time.Now()
				ok, err := l.TryAcquire(t.Context(), 1)
				longest = max(longest, time.Since(begin))
				if ok {
					granted++
				}
				var unavailable *shared.UnavailableError
				require.True(t, err == nil || errors.As(err, &unavailable), err)
				return err
			}
			for range 4 {
				require.NoError(t, try())
			}
			require.Equal(t, 4, granted)

			leave(t, master, sentinel)
			promoted := func() bool {
				addr, err := sentinel.GetMasterAddrByName(t.Context(), "pace").Result()
				return err == nil && addr[0]+":"+addr[1] == replica.Addr
			}
			require.Eventually(t, func() bool { _ = try(); return promoted() }, 60*time.Second, 20*time.Millisecond)
			begin := time.Now()
			require.Eventually(t, func() bool { return try() == nil }, 20*time.Second, 5*time.Millisecond)
			t.Logf("back %v after the Sentinel named the new master", time.Since(begin))
			for range 30 {
				require.NoError(t, try())
			}
			require.GreaterOrEqual(t, granted, 10)
			require.LessOrEqual(t, granted, 2*10+1, "a store too many, and the last one's own")
			require.Less(t, longest, generous)
		})
	}
}
