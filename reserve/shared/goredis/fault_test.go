package goredis_test

import (
	"context"
	"errors"
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
)

// timeout is long for a server that is well, on a machine however busy; generous is what a
// caller may take at most, which is less than the 5 s of a client that does not obey.
const (
	timeout  = 500 * time.Millisecond
	generous = 6 * timeout
)

// A fault happens to a server, and passes.
type fault struct {
	name   string
	begin  func(t *testing.T, s *server.Server, c *redis.Client)
	end    func(t *testing.T, s *server.Server, c *redis.Client)
	proxy  func(p *proxy) // what the one between the client and the server does
	silent bool           // a call that is not answered may have been charged
	flaky  bool           // some calls are answered
	config bool           // somebody's mistake, that no fallback hides
}

func faults() []fault {
	config := func(key, value string) func(*testing.T, *server.Server, *redis.Client) {
		return func(t *testing.T, _ *server.Server, c *redis.Client) {
			require.NoError(t, c.ConfigSet(context.Background(), key, value).Err())
		}
	}
	do := func(args ...any) func(*testing.T, *server.Server, *redis.Client) {
		return func(t *testing.T, _ *server.Server, c *redis.Client) {
			require.NoError(t, c.Do(context.Background(), args...).Err())
		}
	}
	return []fault{
		{name: "killed, restarted empty",
			begin: func(_ *testing.T, s *server.Server, _ *redis.Client) { s.Kill() },
			end:   func(_ *testing.T, s *server.Server, _ *redis.Client) { s.Restart() }},
		{name: "stopped", silent: true,
			begin: func(_ *testing.T, s *server.Server, _ *redis.Client) { s.Stop() },
			end:   func(_ *testing.T, s *server.Server, _ *redis.Client) { s.Continue() }},
		{name: "out of memory", begin: config("maxmemory", "1"), end: config("maxmemory", "0")},
		{name: "read-only", begin: do("REPLICAOF", "127.0.0.1", "1"), end: do("REPLICAOF", "NO", "ONE")},
		{name: "slow by 1.5 s", silent: true, proxy: func(p *proxy) { p.delay = 3 * timeout }},
		{name: "cut after 400 bytes", flaky: true, proxy: func(p *proxy) { p.most = 400 }},
		{name: "every other answer lost", flaky: true, proxy: func(p *proxy) { p.moody = true }},
		{name: "busy script",
			begin: func(t *testing.T, s *server.Server, c *redis.Client) {
				require.NoError(t, c.ConfigSet(context.Background(), "lua-time-limit", "10").Err())
				go func() { _ = c.Eval(context.Background(), "while true do end", nil).Err() }() // until it is killed
				other := redis.NewClient(&redis.Options{Addr: s.Addr})
				defer other.Close()
				require.Eventually(t, func() bool {
					return redis.HasErrorPrefix(other.Ping(context.Background()).Err(), "BUSY")
				}, 10*time.Second, 10*time.Millisecond)
			},
			end: do("SCRIPT", "KILL")},
		{name: "WRONGTYPE", config: true,
			begin: func(t *testing.T, s *server.Server, c *redis.Client) {
				require.NoError(t, c.Del(context.Background(), "pace:{fault}").Err())
				require.NoError(t, c.LPush(context.Background(), "pace:{fault}", 1).Err())
			},
			end: do("DEL", "pace:{fault}")},
		{name: "garbage", config: true, begin: do("SET", "pace:{fault}", "pac\x02 garbage"), end: do("DEL", "pace:{fault}")},
	}
}

// Each fault as callers see it, under each policy: 20 of them during it, then one a second later.
func TestFaults(t *testing.T) {
	modes := []struct {
		name    string
		opt     shared.Option
		granted func(n int) bool // of 20 during a fault without answers
	}{
		{"FailClosed", shared.FailClosed(), func(n int) bool { return n == 0 }},
		{"FailOpen", shared.FailOpen(), func(n int) bool { return n == 20 }},
		{"Local(0.5)", shared.Local(0.5), func(n int) bool { return n >= 1 && n <= 6 }},
	}
	for _, f := range faults() {
		for _, m := range modes {
			t.Run(f.name+", "+m.name, func(t *testing.T) {
				t.Parallel()
				f := f // changed below
				s := server.Start(t)
				admin, addr := connect(t, s), s.Addr
				var network *proxy
				if f.proxy != nil {
					network = newProxy(t, s.Addr)
					addr = network.addr
					f.begin = func(*testing.T, *server.Server, *redis.Client) { network.set(f.proxy) }
					f.end = func(*testing.T, *server.Server, *redis.Client) {
						network.set(func(p *proxy) { p.delay, p.most, p.moody = 0, 0, false })
					}
				}
				c := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, DialerRetries: 1})
				t.Cleanup(func() { _ = c.Close() })
				// An hour for a store of 10: the grants can be counted.
				l := newShared(t, c, "fault", reserve.Must(pace.Bursty(10.0/3600, pace.WithBurst(time.Hour))), m.opt, shared.WithTimeout(timeout))
				ctx := context.Background()
				ok, err := l.TryAcquire(ctx, 1)
				require.NoError(t, err)
				require.True(t, ok)

				f.begin(t, s, admin)
				granted, refused, longest := 0, 0, time.Duration(0)
				calls := 20
				if f.flaky {
					calls = 40
				}
				for range calls {
					begin := time.Now()
					ok, err = l.TryAcquire(ctx, 1)
					longest = max(longest, time.Since(begin))
					switch {
					case ok:
						granted++
					case f.config:
						require.IsType(t, &shared.ConfigError{}, err)
						refused++
					case err != nil:
						require.IsType(t, &shared.UnavailableError{}, err)
						refused++
					}
				}
				saw := err
				f.end(t, s, admin)

				// Recovery: somebody asks again soon.
				require.Eventually(t, func() bool {
					_, err := l.Stored(ctx)
					return err == nil
				}, 30*time.Second, 20*time.Millisecond)
				_, err = l.Stored(ctx)
				require.NoError(t, err)
				stored, err := l.Stored(ctx)
				require.NoError(t, err)
				t.Logf("| %s | %s | %v | %v | %d granted, %d refused with an error | %.0f stored after |",
					f.name, m.name, saw, longest.Round(time.Millisecond), granted, refused, stored)

				require.Less(t, longest, generous)
				if f.config {
					require.Zero(t, granted)
					require.Equal(t, 20, refused)
					return
				}
				// Nobody is refused for long: at most a store is charged that was not asked for,
				// beside what was answered. A permit takes 6 minutes; the last one's own may be
				// owed.
				free, err := l.NextFree(ctx)
				require.NoError(t, err)
				debt := time.Until(free).Minutes() / 6
				if f.flaky {
					require.LessOrEqual(t, debt, 11.1)
					switch m.name {
					case "FailClosed":
						require.LessOrEqual(t, granted, 9)
					case "FailOpen":
						require.GreaterOrEqual(t, granted, 9)
					default:
						require.LessOrEqual(t, granted, 9+6)
					}
					return
				}
				require.LessOrEqual(t, debt, 1.1)
				require.True(t, m.granted(granted), "granted %d", granted)
				// All that was granted is charged now, but for calls that got no answer: at most
				// three, then nobody asks any more. 10 fitted and 1 was taken before, unless the
				// server has lost that; at most the store is charged.
				left, lost := 9, 0.0
				if f.name == "killed, restarted empty" {
					left = 10
				}
				if f.silent {
					lost = 3
				}
				require.GreaterOrEqual(t, stored, float64(max(0, left-granted))-0.1)
				require.LessOrEqual(t, stored, float64(max(0, left-granted))+lost+0.1)
			})
		}
	}
}

// 64 callers at once on a server that has stopped: all have their answer within the time-out.
func TestStoppedCrowd(t *testing.T) {
	watchdog.Start(t)
	s := server.Start(t)
	l := newShared(t, connect(t, s), "crowd", reserve.Must(pace.Bursty(1e6)), shared.WithTimeout(timeout))
	_, err := l.Reserve(t.Context(), 1)
	require.NoError(t, err)
	s.Stop()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var longest time.Duration
	for range 64 {
		wg.Go(func() {
			begin := time.Now()
			_, err := l.Reserve(context.Background(), 1)
			mu.Lock()
			defer mu.Unlock()
			longest = max(longest, time.Since(begin))
			var unavailable *shared.UnavailableError
			if !errors.As(err, &unavailable) {
				t.Errorf("%v", err)
			}
		})
	}
	wg.Wait()
	s.Continue()
	t.Logf("64 callers, longest %v", longest)
	require.Less(t, longest, generous)
}

// A caller's own cancelled context is no failure of the server's.
func TestCancelledContextOpensNothing(t *testing.T) {
	s := server.Start(t)
	p := newProxy(t, s.Addr)
	c := redis.NewClient(&redis.Options{Addr: p.addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	l := newShared(t, c, "own", reserve.Must(pace.Bursty(10)))
	_, err := l.Reserve(t.Context(), 1)
	require.NoError(t, err)
	p.set(func(p *proxy) { p.delay = 300 * time.Millisecond })
	gone := errors.New("gone")
	for range 5 {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Millisecond, gone)
		_, err := l.Reserve(ctx, 1)
		require.ErrorIs(t, err, gone)
		cancel()
	}
	p.set(func(p *proxy) { p.delay = 0 })
	_, err = l.Reserve(t.Context(), 1) // not refused by an open circuit
	require.NoError(t, err)
}

// A hook of the client's panics, and something recovers, as net/http does: no later call hangs or
// fails.
func TestPanicOfAHook(t *testing.T) {
	watchdog.Start(t)
	s := server.Start(t)
	c := connect(t, s)
	hook := &panics{}
	c.AddHook(hook)
	l := newShared(t, c, "hook", reserve.Must(pace.Bursty(1e6)))
	require.NoError(t, l.Wait(t.Context()))
	hook.now.Store(true)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			defer func() { _ = recover() }()
			_ = l.Wait(t.Context())
		})
	}
	all.Wait()
	hook.now.Store(false)
	require.Eventually(t, func() bool { return l.Wait(t.Context()) == nil }, 10*time.Second, 10*time.Millisecond)
	for range 50 {
		all.Go(func() {
			if err := l.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// panics is a hook that does.
type panics struct{ now atomic.Bool }

func (p *panics) DialHook(next redis.DialHook) redis.DialHook { return next }

func (p *panics) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (p *panics) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if p.now.Load() {
			panic("a hook's")
		}
		return next(ctx, cmd)
	}
}
