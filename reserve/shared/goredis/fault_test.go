package goredis_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/internal/server"
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
	proxy  bool // between the client and the server
	silent bool // a call that is not answered may have been charged
	config bool // somebody's mistake, that no fallback hides
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
		{name: "slow by 1.5 s", proxy: true, silent: true},
		{name: "WRONGTYPE", config: true,
			begin: func(t *testing.T, s *server.Server, c *redis.Client) {
				require.NoError(t, c.Del(context.Background(), "pace:{fault}").Err())
				require.NoError(t, c.LPush(context.Background(), "pace:{fault}", 1).Err())
			},
			end: do("DEL", "pace:{fault}")},
	}
}

// Each fault as callers see it, under each policy: 20 of them during it, then one a second later.
func TestFaults(t *testing.T) {
	modes := []struct {
		name    string
		opt     shared.Option
		granted func(n int) bool // of 20 during the fault; 10 are stored in the fallback's share at most
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
				var delay *proxy
				if f.proxy {
					delay = newProxy(t, s.Addr)
					addr = delay.addr
					f.begin = func(*testing.T, *server.Server, *redis.Client) { delay.set(3 * timeout) }
					f.end = func(*testing.T, *server.Server, *redis.Client) { delay.set(0) }
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
				for range 20 {
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

				// Recovery: within a second or two somebody asks again.
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
				require.True(t, m.granted(granted), "granted %d", granted)
				// All that was granted is charged now, but for calls that got no answer: at most three, then nobody
				// asks any more. 10 fitted and 1 was taken before, unless the server has lost that; at most the
				// store is charged.
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
	p.set(300 * time.Millisecond)
	gone := errors.New("gone")
	for range 5 {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Millisecond, gone)
		_, err := l.Reserve(ctx, 1)
		require.ErrorIs(t, err, gone)
		cancel()
	}
	p.set(0)
	_, err = l.Reserve(t.Context(), 1) // not refused by an open circuit
	require.NoError(t, err)
}

// A proxy delays what passes.
type proxy struct {
	addr  string
	mu    sync.Mutex
	delay time.Duration
}

func (p *proxy) set(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

func newProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{addr: l.Addr().String()}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				log.Print(err)
				_ = in.Close()
				continue
			}
			mu.Lock()
			open = append(open, in, out)
			mu.Unlock()
			wg.Go(func() { p.pass(out, in, true); _ = out.Close() })
			wg.Go(func() { p.pass(in, out, false); _ = in.Close() })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return p
}

func (p *proxy) pass(to, from net.Conn, slow bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			p.mu.Lock()
			d := p.delay
			p.mu.Unlock()
			if slow && d > 0 {
				<-time.After(d)
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				return
			}
			return
		}
	}
}
