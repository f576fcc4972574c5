package goredis_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/server"
	"github.com/nextfree/pace/internal/watchdog"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/goredis"
)

// A 3-node cluster: each key is on the node that its name says, and nothing crosses slots.
func TestCluster(t *testing.T) {
	nodes := server.Cluster(t, 0)
	var addrs []string
	for _, n := range nodes {
		addrs = append(addrs, n.Addr)
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	k, err := shared.NewKeyed(goredis.Client(c), reserve.Must(pace.Bursty(0.01, pace.WithCapacity(4))), shared.WithTimeout(5*time.Second))
	require.NoError(t, err)
	require.Equal(t, 60*5, tryTogether(t, k, 60, 6))
	for _, n := range nodes {
		keys, err := connect(t, n).DBSize(t.Context()).Result()
		require.NoError(t, err)
		require.Positive(t, keys)
		t.Logf("%s holds %d of 60 limiters", n.Addr, keys)
	}
	l := newShared(t, c, "one", reserve.Must(pace.Bursty(100)))
	r, err := l.Reserve(t.Context(), 300)
	require.NoError(t, err)
	r.Cancel()
	stored, err := l.Stored(t.Context())
	require.NoError(t, err)
	require.InDelta(t, 100, stored, 1e-6)
}

// A master of a cluster dies, and its replica takes its place: the limiter is back soon after, not
// when the client would have looked by itself, once a minute.
func TestClusterFailover(t *testing.T) {
	nodes := server.Cluster(t, 1)
	var addrs []string
	for _, n := range nodes {
		addrs = append(addrs, n.Addr)
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true, DialerRetries: 1})
	t.Cleanup(func() { _ = c.Close() })
	l := newShared(t, c, "failover", reserve.Must(pace.Bursty(1000)), shared.WithTimeout(timeout))
	require.NoError(t, l.Wait(t.Context()))
	var master *server.Server
	for _, n := range server.Masters(nodes) {
		if keys, err := connect(t, n).DBSize(t.Context()).Result(); err == nil && keys > 0 {
			master = n
		}
	}
	require.NotNil(t, master)
	master.Kill()
	var unavailable *shared.UnavailableError
	elected := false
	require.Eventually(t, func() bool {
		err := l.Wait(t.Context())
		require.True(t, err == nil || errors.As(err, &unavailable), err)
		elected = elected || len(server.Masters(nodes)) == 3
		return elected
	}, 30*time.Second, 20*time.Millisecond)
	begin := time.Now()
	require.Eventually(t, func() bool { return l.Wait(t.Context()) == nil }, 10*time.Second, 5*time.Millisecond)
	t.Logf("back %v after the election", time.Since(begin))
}

// One of three masters is stopped, and has no replica: the keys of the others are limited by their servers as before,
// whatever is to be done for its own.
func TestOneDeadNode(t *testing.T) {
	watchdog.Start(t)
	nodes := server.Cluster(t, 0)
	for _, n := range nodes { // or the others refuse, too, once they miss it
		require.NoError(t, connect(t, n).ConfigSet(t.Context(), "cluster-require-full-coverage", "no").Err())
	}
	for name, mode := range map[string]shared.Option{"closed": shared.FailClosed(), "open": shared.FailOpen(), "local": shared.Local(0.5)} {
		t.Run(name, func(t *testing.T) {
			c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addresses(nodes), ContextTimeoutEnabled: true, DialerRetries: 1})
			defer c.Close()
			const capacity = 1e6
			policy := reserve.Must(pace.Bursty(0.001, pace.WithCapacity(capacity)))
			k, err := shared.NewKeyed(goredis.Client(c), policy, shared.WithPrefix(name), shared.WithTimeout(500*time.Millisecond), mode)
			require.NoError(t, err)
			const keys = 600
			var of [keys]string // which node has it
			for i := range keys {
				ok, err := k.TryAcquire(t.Context(), fmt.Sprint(i), 1)
				require.NoError(t, err)
				require.True(t, ok)
				node, err := c.MasterForKey(t.Context(), hashed(fmt.Sprint(i)))
				require.NoError(t, err)
				of[i] = node.Options().Addr
			}
			nodes[0].Stop()
			stopped := true
			defer func() {
				if stopped {
					nodes[0].Continue()
				}
			}()
			var asked, failed, uncharged, dead atomic.Int64
			var granted [keys]atomic.Int64
			var callers sync.WaitGroup
			end := time.Now().Add(3 * time.Second)
			for g := range 32 {
				callers.Go(func() {
					random := rand.New(rand.NewPCG(3, uint64(g)))
					for time.Now().Before(end) || asked.Load() <= 1000 {
						i := random.IntN(keys)
						ok, err := k.TryAcquire(t.Context(), fmt.Sprint(i), 1)
						if of[i] == nodes[0].Addr {
							dead.Add(1)
							continue
						}
						asked.Add(1)
						if err != nil || !ok {
							failed.Add(1)
						} else {
							granted[i].Add(1)
						}
					}
				})
			}
			callers.Wait()
			nodes[0].Continue()
			stopped = false
			for _, n := range nodes { // it is missed no more
				require.Eventually(t, func() bool {
					info, err := connect(t, n).ClusterInfo(t.Context()).Result()
					return err == nil && strings.Contains(info, "cluster_slots_ok:16384")
				}, 30*time.Second, 20*time.Millisecond)
			}
			look := newKeyed(t, c, policy, shared.WithPrefix(name))
			for i := range keys {
				if of[i] != nodes[0].Addr {
					shot, err := look.Snapshot(t.Context(), fmt.Sprint(i))
					require.NoError(t, err)
					uncharged.Add(granted[i].Load() + 1 - int64(math.Round(capacity-shot.Level)))
				}
			}
			t.Logf("healthy keys: %d asked, %d failed, %d granted without Redis; %d of the dead node's",
				asked.Load(), failed.Load(), uncharged.Load(), dead.Load())
			require.Greater(t, asked.Load(), int64(1000))
			require.LessOrEqual(t, float64(failed.Load()+max(uncharged.Load(), -uncharged.Load())), 0.01*float64(asked.Load()))
		})
	}
}
