package inbound_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
)

// pipes is a listener whose connections are pipes, so that a server and its clients
// can be in one bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// serve starts a server over pipes, and returns a client of it.
func serve(t *testing.T, h http.Handler) *http.Client {
	t.Helper()
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: h}
	done := make(chan error)
	go func() { done <- server.Serve(l) }()
	transport := &http.Transport{DialContext: l.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return &http.Client{Transport: transport}
}

func TestQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := build(t, []inbound.Tier{inbound.Global("global", reserve.Must(pace.Bursty(10)))}, inbound.WithQueue(2*s, 15))
		client := serve(t, m.Handler(ok))
		begin := time.Now()
		var mu sync.Mutex
		var served []time.Duration
		refused := map[string]int{}
		var all sync.WaitGroup
		for range 30 {
			all.Go(func() {
				res, err := client.Get("http://pipe/")
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
				res.Body.Close()
				if res.StatusCode == 200 {
					served = append(served, time.Since(begin))
					return
				}
				if time.Since(begin) > 0 {
					t.Error("not decided on arrival")
				}
				refused[res.Header.Get("Retry-After")]++
			})
			synctest.Wait()
		}
		require.Equal(t, 15, m.Stats().Waiting)
		all.Wait()
		require.Len(t, served, 16)
		for i, at := range served {
			require.Equal(t, time.Duration(i)*100*time.Millisecond, at)
		}
		require.Equal(t, map[string]int{"2": 5, "3": 9}, refused, "1.6 s from then on, and a tenth of a second later each")
		waits := m.Stats().Waits
		require.Equal(t, 12*s, waits.Sum, "0.1 to 1.5 s")
		require.Equal(t, []uint64{0, 0, 0, 0, 0, 1, 1, 3, 5, 5, 0, 0, 0, 0, 0}, waits.Counts)
		require.Len(t, waits.Bounds, 14)
		require.Equal(t, inbound.Stats{Allowed: 16, Queued: 15, Tiers: []inbound.TierStats{{Name: "global", Refused: 14}}}, counts(m))
	})
}

func TestQueueErrors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var why []error
		m := build(t, []inbound.Tier{inbound.Global("global", reserve.Must(pace.Bursty(1)))}, inbound.WithQueue(2*s, 1),
			inbound.WithRefusal(func(w http.ResponseWriter, r *http.Request, f *inbound.Refusal) {
				why = append(why, f.Err)
				f.ServeHTTP(w, r)
			}))
		h := m.Handler(ok)
		require.Equal(t, 200, status(h, get("", "/")))
		var waiting sync.WaitGroup
		waiting.Go(func() { do(h, get("", "/")) })
		synctest.Wait()
		require.Equal(t, 429, status(h, get("", "/")))
		require.ErrorIs(t, why[0], inbound.ErrQueueFull)
		require.EqualError(t, why[0], `inbound: tier "global": inbound: the queue is full`)

		// A deadline that the wait would pass is known on arrival.
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		require.Equal(t, 429, status(h, get("", "/").WithContext(ctx)))
		require.ErrorIs(t, why[1], context.DeadlineExceeded)
		var wait *reserve.WaitError
		require.ErrorAs(t, why[1], &wait)
		require.Equal(t, 2*s, wait.Wait)
		waiting.Wait()
	})
}

// A limiter is stopped for longer than a request in the queue can wait: it is refused
// then, and counted.
func TestQueueIsStopped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := reserve.Must(pace.NewBursty(1))
		m := build(t, []inbound.Tier{inbound.GlobalBy("global", l)}, inbound.WithQueue(time.Minute, 4))
		h := m.Handler(ok)
		require.Equal(t, 200, status(h, get("", "/")))
		ctx, cancel := context.WithTimeout(t.Context(), 5*s)
		defer cancel()
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if got := status(h, get("", "/").WithContext(ctx)); got != 429 {
				t.Error(got)
			}
		})
		synctest.Wait()
		l.PauseUntil(time.Now().Add(time.Minute))
		waiting.Wait()
		require.Equal(t, inbound.Stats{Allowed: 1, Queued: 1, Tiers: []inbound.TierStats{{Name: "global", Refused: 1}}}, counts(m))
	})
}

// A request that found the queue full is in no other's way, however long a limiter
// elsewhere takes to get its permits back.
func TestARequestThatGivesBackIsNotInTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate := make(chan struct{})
		m := build(t, []inbound.Tier{inbound.GlobalBy("elsewhere", slowly(gate))}, inbound.WithQueue(time.Minute, 1))
		h := m.Handler(ok)
		var all sync.WaitGroup
		send := func(want int) {
			all.Go(func() {
				if got := status(h, get("", "/")); got != want {
					t.Error(got, want)
				}
			})
			synctest.Wait()
		}
		send(200)
		send(429) // and gives back until the gate opens
		time.Sleep(s + 1)
		send(200)
		close(gate)
		all.Wait()
	})
}

// slowly promises permits in a second, and takes them back when it is closed.
type slowly chan struct{}

func (c slowly) ReserveWithin(context.Context, int, time.Duration) (reserve.Reservation, error) {
	return reserve.NewReservation(c), nil
}
func (c slowly) Permits() int               { return 1 }
func (c slowly) At() time.Time              { return time.Now().Add(s) }
func (c slowly) Delay() time.Duration       { return s }
func (c slowly) Wait(context.Context) error { time.Sleep(s); return nil }
func (c slowly) Cancel()                    { c.Settle(0) }
func (c slowly) Settle(int)                 { <-c }

// A client that goes away gives its permits back, of every tier, and clients that come
// later need not wait for it.
func TestClientsThatGoAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		slow, fast := reserve.Must(pace.NewBursty(1)), reserve.Must(pace.NewBursty(5))
		m := build(t, []inbound.Tier{inbound.GlobalBy("fast", fast), inbound.GlobalBy("slow", slow)}, inbound.WithQueue(time.Hour, 100))
		client := serve(t, m.Handler(ok))
		get := func(ctx context.Context) error {
			r, err := http.NewRequestWithContext(ctx, "GET", "http://pipe/", nil)
			if err != nil {
				return err
			}
			res, err := client.Do(r)
			if err == nil {
				err = res.Body.Close()
			}
			return err
		}
		require.NoError(t, get(t.Context()))
		next := slow.NextFree()
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if err := get(ctx); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		require.Equal(t, 50, m.Stats().Waiting)
		require.Equal(t, next.Add(50*s), slow.NextFree())
		cancel()
		all.Wait()
		synctest.Wait()
		require.Equal(t, next, slow.NextFree())
		require.Equal(t, inbound.Stats{Allowed: 1, Queued: 50, Gone: 50, Tiers: []inbound.TierStats{{Name: "fast"}, {Name: "slow"}}}, counts(m))
		begin := time.Now()
		require.NoError(t, get(t.Context()))
		require.Equal(t, s, time.Since(begin))
	})
}

// A request whose context has ended before it came takes nothing and is not served.
func TestAContextThatHasEnded(t *testing.T) {
	l := bucket(1e-6, 1).Limiter()
	m := build(t, []inbound.Tier{inbound.GlobalBy("global", l)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	res := do(m.Handler(ok), get("", "/").WithContext(ctx))
	require.Equal(t, 503, res.StatusCode)
	require.Equal(t, "no-store", res.Header.Get("Cache-Control"))
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Empty(t, body, "the handler does not run")
	require.Equal(t, 1., l.Stored())
	require.Equal(t, inbound.Stats{Gone: 1, Tiers: []inbound.TierStats{{Name: "global"}}}, counts(m))
}

// The time is the latest of all tiers'; a dry run's counts for nothing.
func TestQueueOfSeveralTiers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := build(t, []inbound.Tier{
			inbound.Global("fast", reserve.Must(pace.Bursty(10))),
			inbound.PerKey("user", user, reserve.Must(pace.Bursty(1))),
			inbound.Global("dry", reserve.Must(pace.Bursty(0.5)), inbound.DryRun()),
		}, inbound.WithQueue(10*s, 10)).Handler(ok)
		begin := time.Now()
		for _, c := range []struct {
			user string
			at   time.Duration
		}{{"ann", 0}, {"ann", s}, {"ann", 2 * s}, {"bob", 2 * s}, {"", 2 * s}, {"bob", 2 * s}, {"bob", 3 * s}} {
			require.Equal(t, 200, status(h, get(c.user, "/")))
			require.Equal(t, c.at, time.Since(begin), c.user)
		}
	})
}

// Whichever tier is the slower one, a request waits for it.
func TestQueueWithTheSlowTierFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := build(t, []inbound.Tier{
			inbound.Global("slow", reserve.Must(pace.Bursty(1))),
			inbound.Global("free", bucket(1000, 1000)),
			inbound.Global("middle", reserve.Must(pace.Bursty(2))),
		}, inbound.WithQueue(10*s, 10))
		h := m.Handler(ok)
		begin := time.Now()
		for i := range 4 {
			require.Equal(t, 200, status(h, get("", "/")))
			require.Equal(t, time.Duration(i)*s, time.Since(begin))
		}
		require.EqualValues(t, 3, m.Stats().Queued, "the first one passed at once")
	})
}

// reserverOf is a limiter that promises nothing, and says why.
type reserverOf func(ctx context.Context) error

func (f reserverOf) ReserveWithin(ctx context.Context, _ int, _ time.Duration) (reserve.Reservation, error) {
	return reserve.Reservation{}, f(ctx)
}
