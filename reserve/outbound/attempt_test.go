package outbound

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

func answered(status int, lines ...string) *http.Response {
	return &http.Response{StatusCode: status, Header: headers(lines...), Request: rpc()}
}

func rpc() *http.Request { return httptest.NewRequest(http.MethodPost, "http://a/service/method", nil) }

// A call that somebody else makes waits, and is stopped, as a request does.
func TestBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits []time.Duration
		limiter := evenly10()
		transport := reserve.Must(New(nil, limiter, WithHooks(Hooks{
			Waited: func(_ *http.Request, d time.Duration) { waits = append(waits, d) }})))
		begin := time.Now()
		for range 2 {
			a, err := transport.Begin(rpc())
			require.NoError(t, err)
			a.Answered(answered(200))
			a.Close()
		}
		require.Equal(t, ms(0, 100), waits)
		a, err := transport.Begin(rpc())
		require.NoError(t, err)
		a.Answered(answered(200))
		a.Answered(answered(429, "Retry-After: 2")) // in the middle of its stream
		a.Close()
		require.Equal(t, begin.Add(2300*time.Millisecond), limiter.NextFree(), "2 s, and what was owed")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = transport.Begin(rpc().WithContext(ctx))
		var wait *reserve.WaitError
		require.ErrorAs(t, err, &wait)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, begin.Add(200*time.Millisecond), time.Now(), "at once")
	})
}

// A probe that is closed without an answer lets the others go.
func TestBeginProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := reserve.Must(pace.NewBursty(math.Inf(1), pace.WithBurst(0)))
		transport := reserve.Must(New(nil, limiter, Adaptive()))
		probe, err := transport.Begin(rpc())
		require.NoError(t, err)
		var gone atomic.Int64
		for range 2 {
			go func() {
				a, err := transport.Begin(rpc())
				if err == nil {
					gone.Add(1)
					a.Answered(answered(200, `RateLimit-Policy: "a";q=50;w=1`))
					a.Close()
				}
			}()
		}
		pass(time.Hour)
		require.Zero(t, gone.Load())
		probe.Close()
		pass(time.Second)
		require.Equal(t, int64(2), gone.Load())
		require.InDelta(t, 49, limiter.Rate(), 1e-9)
	})
}

// An attempt has a place until it is closed, whatever became of it.
func TestBeginInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cost := 0 // without a limit, there is still the place
		hook := func(*http.Request, time.Duration) { panic("the hook's") }
		transport := reserve.Must(New(nil, nil, WithMaxInFlight(1),
			WithLimit(Limit{Limiter: evenly10(), Cost: func(*http.Request) int { return cost }})))
		for cost = range 2 {
			a, err := transport.Begin(rpc())
			require.NoError(t, err)
			a.Answered(answered(200))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err = transport.Begin(rpc().WithContext(ctx))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			cancel()
			a.Close()
			a.Close()
		}
		transport.hooks.Waited = hook
		require.PanicsWithValue(t, "the hook's", func() { transport.Begin(rpc()) })
		transport.hooks.Waited = nil
		a, err := transport.Begin(rpc())
		require.NoError(t, err)
		a.Close()
	})
}

// A dialect that panics leaves no call that is out for ever: its window forgets it. Before, the next call waited without an
// end.
func TestAnsweredPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := func(http.Header) []Left { panic("on purpose") }
		transport := reserve.Must(New(nil, reserve.Must(window.New(1, 10*time.Second)), WithDialect(Dialect{Read: read})))
		a, err := transport.Begin(rpc())
		require.NoError(t, err)
		require.PanicsWithValue(t, "on purpose", func() { a.Answered(answered(200)) })
		a.Close()
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a, err = transport.Begin(rpc().WithContext(ctx))
		require.NoError(t, err)
		require.Equal(t, 10*time.Second, time.Since(begin))
		a.Close()
	})
}

// Answers that come at the same time are observed one after the other.
func TestAnsweredTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := evenly10()
		a, err := reserve.Must(New(nil, limiter, Adaptive())).Begin(rpc())
		require.NoError(t, err)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { a.Answered(answered(429, "Retry-After: 2")) })
		}
		all.Go(a.Close)
		all.Wait()
		a.Close()
		require.Equal(t, 2*time.Second, time.Until(limiter.NextFree()).Truncate(time.Second))
	})
}
