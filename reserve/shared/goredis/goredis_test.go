package goredis_test

import (
	"bytes"
	"context"
	"crypto/sha1"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/server"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/goredis"
	"github.com/nextfree/pace/reserve/shared/internal/pipeline"
)

// Client, ClusterClient and Ring must obey a context's deadline, or New refuses.
func TestSettings(t *testing.T) {
	s := server.Start(t)
	policy := reserve.Must(pace.Bursty(1))
	for _, obeys := range []bool{true, false} {
		single := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: obeys})
		cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.Addr}, ContextTimeoutEnabled: obeys})
		ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": s.Addr}, ContextTimeoutEnabled: obeys})
		for _, c := range []redis.Scripter{single, cluster, ring} {
			_, err := shared.New(goredis.Client(c), "settings", policy)
			if obeys {
				require.NoError(t, err)
				continue
			}
			var value *reserve.ValueError
			require.ErrorAs(t, err, &value)
			require.EqualError(t, err, "goredis: ContextTimeoutEnabled is false; want true, or a server that stops holds every caller for seconds")
		}
		if obeys {
			l := reserve.Must(shared.New(goredis.Client(ring), "ring", policy, shared.WithTimeout(10*time.Second)))
			require.NoError(t, l.Wait(t.Context()))
		}
		conn := single.Conn()
		for _, c := range []redis.Scripter{single.Pipeline(), conn} {
			_, err := shared.New(goredis.Client(c), "settings", policy)
			var value *reserve.ValueError
			require.ErrorAs(t, err, &value)
		}
		require.NoError(t, conn.Close())
		require.NoError(t, single.Close())
		require.NoError(t, cluster.Close())
		require.NoError(t, ring.Close())
	}
}

// A client that is nil is an error of the constructor that gets it.
func TestNil(t *testing.T) {
	const want = "goredis: client is <nil>; want a *redis.Client, *redis.ClusterClient or *redis.Ring"
	policy := reserve.Must(pace.Bursty(1))
	for _, c := range []redis.Scripter{nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil), (*redis.Ring)(nil)} {
		_, one := shared.New(goredis.Client(c), "nil", policy)
		_, many := shared.NewKeyed(goredis.Client(c), policy)
		for _, err := range []error{one, many} {
			require.EqualError(t, err, want)
			require.IsType(t, &reserve.ValueError{}, err)
		}
	}
}

// The connection breaks after the server has run the script, and before the answer
// is back: go-redis's own commands are sent four times, ours once.
func TestNothingIsSentTwice(t *testing.T) {
	s := server.Start(t)
	var broken atomic.Bool
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, addr)
		return &deaf{Conn: conn, broken: &broken}, err
	}
	c := redis.NewClient(&redis.Options{
		Addr: s.Addr, Dialer: dial, ContextTimeoutEnabled: true, MaxRetries: 3, MinRetryBackoff: -1,
		Protocol: 2, DisableIdentity: true,
	})
	defer c.Close()
	l := reserve.Must(shared.New(goredis.Client(c), "once", reserve.Must(pace.Bursty(0.001, pace.WithCapacity(100))), shared.WithTimeout(10*time.Second)))
	_, err := l.Reserve(t.Context(), 1)
	require.NoError(t, err)
	require.NoError(t, c.Set(t.Context(), "count", 0, 0).Err())

	broken.Store(true)
	require.Error(t, c.Incr(t.Context(), "count").Err())
	_, err = l.Reserve(t.Context(), 10)
	require.IsType(t, &shared.UnavailableError{}, err)
	broken.Store(false)

	count, err := c.Get(t.Context(), "count").Int()
	require.NoError(t, err)
	require.Equal(t, 4, count, "go-redis does not repeat commands any more, and this test shows nothing")
	stored, err := l.Stored(t.Context())
	require.NoError(t, err)
	require.InDelta(t, 89, stored, 0.1)
}

// A pipeline: each key has its own answer or error, a script that the server does not know is sent,
// and nothing is sent twice when answers are lost.
func TestPipeline(t *testing.T) {
	s := server.Start(t)
	var broken atomic.Bool
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, addr)
		return &deaf{Conn: conn, broken: &broken}, err
	}
	c := redis.NewClient(&redis.Options{
		Addr: s.Addr, Dialer: dial, ContextTimeoutEnabled: true, MaxRetries: 3, MinRetryBackoff: -1,
		Protocol: 2, DisableIdentity: true,
	})
	defer c.Close()
	source := "return redis.call('INCR', KEYS[1]) .. ARGV[1]"
	script := &shared.Script{Source: source, Hash: fmt.Sprintf("%x", sha1.Sum([]byte(source)))}
	client := goredis.Client(c).(pipeline.Client)
	calls := func() []*pipeline.Call {
		return []*pipeline.Call{{Key: "a", Arg: []byte("x")}, {Key: "wrong", Arg: []byte("y")}, {Key: "b", Arg: []byte("z")}}
	}
	require.NoError(t, c.LPush(t.Context(), "wrong", 1).Err())
	for i := range 3 {
		if i == 2 {
			require.NoError(t, c.ScriptFlush(t.Context()).Err())
		}
		all := calls()
		client.EvalEach(t.Context(), script.Hash, script.Source, all)
		require.NoError(t, all[0].Err)
		require.Equal(t, fmt.Sprint(i+1, "x"), string(all[0].Answer))
		require.ErrorContains(t, all[1].Err, "WRONGTYPE")
		require.NoError(t, all[2].Err)
		require.Equal(t, fmt.Sprint(i+1, "z"), string(all[2].Answer))
	}
	broken.Store(true)
	all := calls()
	client.EvalEach(t.Context(), script.Hash, script.Source, all)
	for _, call := range all {
		require.Error(t, call.Err)
	}
	broken.Store(false)
	for _, key := range []string{"a", "b"} {
		count, err := c.Get(t.Context(), key).Int()
		require.NoError(t, err)
		require.Equal(t, 4, count)
	}
}

// After a restart, a failover or SCRIPT FLUSH a server knows no script: each gets the source once.
func TestPipelineAfterScriptFlush(t *testing.T) {
	for name, c := range map[string]redis.UniversalClient{
		"one server": redis.NewClient(&redis.Options{Addr: server.Start(t).Addr, ContextTimeoutEnabled: true}),
		"a cluster":  redis.NewClusterClient(&redis.ClusterOptions{Addrs: addresses(server.Cluster(t, 0)), ContextTimeoutEnabled: true}),
	} {
		t.Run(name, func(t *testing.T) {
			defer c.Close()
			source := "return redis.call('INCR', KEYS[1]) .. ARGV[1]" + strings.Repeat(" ", 16_000)
			script := &shared.Script{Source: source, Hash: fmt.Sprintf("%x", sha1.Sum([]byte(source)))}
			scripter := goredis.Client(c)
			client := scripter.(pipeline.Client)
			var calls []*pipeline.Call
			for i := range 128 {
				calls = append(calls, &pipeline.Call{Key: fmt.Sprint("key ", i), Arg: []byte("!")})
			}
			_, err := scripter.Eval(t.Context(), script, "first", nil)
			require.NoError(t, err)
			each(t, c, func(c *redis.Client) error { return c.ScriptFlush(t.Context()).Err() })
			each(t, c, func(c *redis.Client) error { return c.ConfigResetStat(t.Context()).Err() })
			begin := time.Now()
			client.EvalEach(t.Context(), script.Hash, script.Source, calls)
			t.Logf("128 calls took %v", time.Since(begin))
			for _, call := range calls {
				require.NoError(t, call.Err)
				require.Equal(t, "1!", string(call.Answer))
			}
			each(t, c, func(c *redis.Client) error {
				stats, err := c.Info(t.Context(), "commandstats").Result()
				require.Contains(t, stats, "cmdstat_eval:calls=1,")
				return err
			})
		})
	}
}

// each does something to each server.
func each(t *testing.T, c redis.UniversalClient, do func(*redis.Client) error) {
	switch c := c.(type) {
	case *redis.Client:
		require.NoError(t, do(c))
	case *redis.ClusterClient:
		require.NoError(t, c.ForEachMaster(t.Context(), func(_ context.Context, c *redis.Client) error { return do(c) }))
	}
}

func addresses(nodes []*server.Server) (addrs []string) {
	for _, n := range nodes {
		addrs = append(addrs, n.Addr)
	}
	return addrs
}

// A deaf connection breaks when a command that counts has its answer; so handshakes pass.
type deaf struct {
	net.Conn
	broken *atomic.Bool
	counts atomic.Bool
}

func (d *deaf) Write(b []byte) (int, error) {
	d.counts.Store(bytes.Contains(b, []byte("incr")) || bytes.Contains(b, []byte("eval")))
	return d.Conn.Write(b)
}

func (d *deaf) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	if n > 0 && d.broken.Load() && d.counts.Load() {
		_ = d.Conn.Close()
		return 0, io.EOF
	}
	return n, err
}
