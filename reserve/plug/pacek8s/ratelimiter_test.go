package pacek8s

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/metrics"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// reserver is a Reserver that is no *reserve.Limiter.
type reserver func() (reserve.Reservation, error)

func (r reserver) ReserveWithin(context.Context, int, time.Duration) (reserve.Reservation, error) {
	return r()
}

var errDown = errors.New("down")

func down() (reserve.Reservation, error) { return reserve.Reservation{}, errDown }

func newRateLimiter(t *testing.T, by reserve.Reserver) *RateLimiter {
	r, err := NewRateLimiter(by)
	require.NoError(t, err)
	return r
}

func TestRateLimiterPaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRateLimiter(t, reserve.Must(pace.NewTokenBucket(10, 3)))
		begin := time.Now()
		for range 3 {
			require.True(t, r.TryAccept())
		}
		require.False(t, r.TryAccept())
		r.Accept()
		require.NoError(t, r.Wait(t.Context()))
		require.Equal(t, 200*time.Millisecond, time.Since(begin))
		require.Equal(t, float32(10), r.QPS())
	})
}

// A deadline that can't be met, and a caller that gives up, take nothing.
func TestRateLimiterRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRateLimiter(t, reserve.Must(pace.NewTokenBucket(1, 1)))
		require.True(t, r.TryAccept())
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
		defer cancel()
		var late *reserve.WaitError
		require.ErrorAs(t, r.Wait(ctx), &late)
		require.Equal(t, time.Second, late.Wait)
		require.Zero(t, time.Since(begin))

		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		require.ErrorIs(t, r.Wait(ctx), context.Canceled)
		require.NoError(t, r.Wait(t.Context()))
		require.Equal(t, time.Second, time.Since(begin))
	})
}

// Stop ends every wait, gives the permits back, and leaves the limiter itself alone.
func TestRateLimiterStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := reserve.Must(pace.NewTokenBucket(1, 1))
		r := newRateLimiter(t, limiter)
		r.Accept()
		begin := time.Now()
		done := make(chan error, 2)
		go func() { done <- r.Wait(context.Background()) }()
		go func() { r.Accept(); done <- ErrStopped }()
		synctest.Wait()
		r.Stop()
		r.Stop()
		require.ErrorIs(t, <-done, ErrStopped)
		require.ErrorIs(t, <-done, ErrStopped)
		require.ErrorIs(t, r.Wait(t.Context()), ErrStopped)
		r.Accept()
		require.False(t, r.TryAccept())
		require.Zero(t, time.Since(begin))
		require.NoError(t, limiter.Wait(t.Context()))
		require.Equal(t, time.Second, time.Since(begin))
	})
}

// Accept has no error to return: it goes on until the limiter's longest wait is long enough, and
// keeps to the rate.
func TestAcceptPastTheLongestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRateLimiter(t, reserve.Must(pace.NewTokenBucket(1, 1, reserve.WithMaxWait(time.Second))))
		begin := time.Now()
		var went [4]time.Duration
		done := make(chan struct{})
		for range 4 {
			go func() { r.Accept(); done <- struct{}{} }()
		}
		for i := range went {
			<-done
			went[i] = time.Since(begin)
		}
		require.Equal(t, [4]time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}, went)

		go func() { r.Accept(); done <- struct{}{} }()
		go func() { r.Accept(); done <- struct{}{} }()
		synctest.Wait()
		r.Stop()
		<-done
		<-done
		require.Equal(t, 3*time.Second, time.Since(begin))
	})
}

// It asks again as soon as it may, and not after callers that came later.
func TestAcceptAsksAgainInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := reserve.Must(pace.NewTokenBucket(1, 1, reserve.WithMaxWait(2*time.Second)))
		r := newRateLimiter(t, limiter)
		_, err := limiter.Reserve(t.Context(), 3) // until 2 s
		require.NoError(t, err)
		begin := time.Now()
		done := make(chan time.Duration)
		go func() { r.Accept(); done <- time.Since(begin) }()
		time.Sleep(1500 * time.Millisecond)
		require.Equal(t, 4*time.Second, limiter.Snapshot().Wait+1500*time.Millisecond)
		require.Equal(t, 3*time.Second, <-done)
	})
}

// A limiter that fails: the error is the call's, and Accept does not hang.
func TestRateLimiterFails(t *testing.T) {
	r := newRateLimiter(t, reserver(down))
	require.ErrorIs(t, r.Wait(t.Context()), errDown)
	require.False(t, r.TryAccept())
	r.Accept()
	require.Zero(t, r.QPS())

	for _, by := range []reserve.Reserver{nil, (*reserve.Limiter)(nil)} {
		_, err := NewRateLimiter(by)
		var value *reserve.ValueError
		require.ErrorAs(t, err, &value)
		require.EqualError(t, err, "pacek8s: the limiter is <nil>; want a limiter")
	}
}

// A Reserver of any kind is asked for a permit that may be used now.
func TestTryAcceptOfAReserver(t *testing.T) {
	limiter := reserve.Must(pace.NewTokenBucket(1, 1, reserve.WithClock(clockwork.NewFakeClock())))
	r := newRateLimiter(t, reserve.All(limiter))
	require.True(t, r.TryAccept())
	require.False(t, r.TryAccept())
	require.Equal(t, float32(1), r.QPS())
}

type latencies struct{ waited atomic.Int64 }

func (l *latencies) Observe(_ context.Context, _ string, _ url.URL, d time.Duration) {
	l.waited.Add(int64(d))
}

// Client-go's rest client waits for the permits, and its own metric says for how long.
func TestRestClient(t *testing.T) {
	metric, before := new(latencies), metrics.RateLimiterLatency
	metrics.RateLimiterLatency = metric
	defer func() { metrics.RateLimiterLatency = before }()
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		config := &rest.Config{RateLimiter: newRateLimiter(t, reserve.Must(pace.NewTokenBucket(10, 1)))}
		config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
		config.GroupVersion = &scheme.Scheme.PrioritizedVersionsAllGroups()[0]
		config.Transport = roundTrip(func(*http.Request) (*http.Response, error) {
			requests++
			w := httptest.NewRecorder()
			w.WriteString("{}")
			return w.Result(), nil
		})
		client, err := rest.RESTClientFor(config)
		require.NoError(t, err)
		begin := time.Now()
		for range 4 {
			require.NoError(t, client.Get().AbsPath("/version").Do(t.Context()).Error())
		}
		require.Equal(t, 300*time.Millisecond, time.Since(begin))
		require.Equal(t, int64(300*time.Millisecond), metric.waited.Load())
		require.Equal(t, 4, requests)

		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		var late *reserve.WaitError
		require.ErrorAs(t, client.Get().AbsPath("/version").Do(ctx).Error(), &late)
		require.Equal(t, 4, requests)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
