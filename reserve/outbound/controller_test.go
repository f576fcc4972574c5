package outbound

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
)

// When a request gives up, those behind it go earlier; when the rate rises, too. All keep their
// order.
func TestQueueMovesUp(t *testing.T) {
	for _, c := range []struct {
		name string
		by   func(*reserve.Limiter) reserve.Reserver
		want []time.Duration
	}{
		{"by Retime", func(l *reserve.Limiter) reserve.Reserver { return l },
			ms(0, 1000, 1500, 2000)}, // 1/s until 1 s, and 2/s from then on
		{"by SetRate", func(l *reserve.Limiter) reserve.Reserver { return setOnly{bare{l}, l} },
			ms(0, 500, 1500, 2500)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var j *journal
			bubble(t, func(w http.ResponseWriter, r *http.Request) {
				quota := 1 / 0.98
				if j.note(r) > 1 {
					quota *= 2
				}
				w.Header().Set("RateLimit-Policy", fmt.Sprintf(`"a";q=%.0f;w=500`, 500*quota))
			}, func(t *testing.T, base *http.Transport) {
				j = newJournal()
				limiter := reserve.Must(pace.NewBursty(2, pace.WithBurst(0)))
				client := &http.Client{Transport: reserve.Must(New(base, c.by(limiter), Adaptive()))}
				get(client, "http://a/0") // 1/s, from here on; what is owed scales
				ctx, leave := context.WithCancel(t.Context())
				gone := make(chan error)
				go func() {
					_, err := client.Transport.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "http://a/gone", nil))
					gone <- err
				}()
				synctest.Wait()
				var all sync.WaitGroup
				for i := range 3 {
					all.Go(func() { get(client, fmt.Sprintf("http://a/%d", i+1)) })
					synctest.Wait()
				}
				leave()
				require.ErrorIs(t, <-gone, context.Canceled)
				all.Wait()
				for i, want := range c.want {
					require.InDelta(t, want, j.times()[i], float64(5*time.Millisecond), "%v", j.times())
				}
				require.Equal(t, []string{"/0", "/1", "/2", "/3"}, j.order())
			})
		})
	}
}

// setOnly is a limiter whose rate can be set, but not for those that wait.
type setOnly struct {
	bare
	tuned interface {
		PauseUntil(time.Time)
		Rate() float64
		SetRate(float64) error
	}
}

func (s setOnly) PauseUntil(t time.Time)     { s.tuned.PauseUntil(t) }
func (s setOnly) Rate() float64              { return s.tuned.Rate() }
func (s setOnly) SetRate(rate float64) error { return s.tuned.SetRate(rate) }

// A probe that is refused: what an unlimited limiter has saved up is spilled although the key is
// stopped, so there is no herd at the end of the stop.
func TestRefusedProbeSpills(t *testing.T) {
	var j *journal
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		if j.note(r) == 1 {
			refuse(w, "Retry-After: 1")
		}
	}, func(t *testing.T, base *http.Transport) {
		j = newJournal()
		pass(time.Second) // to save up
		limiter := reserve.Must(pace.NewBursty(unknownRate))
		getAll(&http.Client{Transport: reserve.Must(New(base, limiter, Adaptive()))}, "http://a", 6)
		times := j.times()
		for i := 2; i < len(times); i++ {
			require.Greater(t, times[i]-times[i-1], 50*time.Millisecond, "%v", times)
		}
	})
}

// If a rate is set elsewhere while all wait for the probe, there is nothing left to find
// out, and they need not go one after the other.
func TestRateBecomesKnownDuringProbe(t *testing.T) {
	var j *journal
	bubble(t, func(_ http.ResponseWriter, r *http.Request) {
		j.note(r)
		pass(time.Second)
	}, func(t *testing.T, base *http.Transport) {
		j = newJournal()
		limiter := reserve.Must(pace.NewBursty(unknownRate, pace.WithBurst(0)))
		client := &http.Client{Transport: reserve.Must(New(base, limiter, Adaptive()))}
		done := make(chan map[int]int)
		go func() { done <- getAll(client, "http://a", 4) }()
		synctest.Wait()
		require.NoError(t, limiter.SetRate(10))
		get(client, "http://a") // sees the new rate
		<-done
		times := j.times()
		require.Len(t, times, 5)
		require.Less(t, times[4], 1500*time.Millisecond, "%v", times)
	})
}

// WithMaxWait holds for those who wait for the probe, too.
func TestMaxWaitBehindProbe(t *testing.T) {
	bubble(t, answer, func(t *testing.T, base *http.Transport) {
		transport := reserve.Must(New(tripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, errGone
		}), nil, Adaptive(), WithMaxWait(2*time.Second)))
		ctx, cancel := context.WithCancel(t.Context())
		probe := make(chan error)
		go func() {
			_, err := transport.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "http://a/", nil))
			probe <- err
		}()
		synctest.Wait()
		begin := time.Now()
		own, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		_, err := transport.RoundTrip(httptest.NewRequestWithContext(own, http.MethodGet, "http://a/", nil))
		var wait *reserve.WaitError
		require.ErrorAs(t, err, &wait)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 2*time.Second, wait.MaxWait)
		require.Equal(t, 2*time.Second, time.Since(begin).Round(time.Microsecond))
		cancel()
		require.ErrorIs(t, <-probe, errGone)
	})
}

// A hook that panics while it is told of the probe leaves the next one to be it.
func TestHookPanicsAtProbe(t *testing.T) {
	bubble(t, answer, func(t *testing.T, base *http.Transport) {
		first := true
		transport := reserve.Must(New(base, nil, Adaptive(), WithHooks(Hooks{Waited: func(*http.Request, time.Duration) {
			if first {
				first = false
				panic(errGone)
			}
		}})))
		r := httptest.NewRequest(http.MethodGet, "http://a/", nil)
		require.PanicsWithError(t, errGone.Error(), func() { transport.RoundTrip(r) })
		status, err := get(&http.Client{Transport: transport, Timeout: time.Hour}, "http://a")
		require.NoError(t, err)
		require.Equal(t, 200, status)
	})
}

// Keys that share a limiter share what is found out about it. (If each had a lane of its
// own, it would take the other's cuts for a new ceiling, and the rate would never grow again.)
func TestKeysThatShareALimiter(t *testing.T) {
	n := 0
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {
		if n++; n == 1 {
			refuse(w, "Retry-After-Ms: 1")
		}
	}, func(t *testing.T, base *http.Transport) {
		limiter := reserve.Must(pace.NewBursty(80, pace.WithBurst(0)))
		client := &http.Client{Transport: reserve.Must(New(base, nil, Adaptive(), PerKey(Host, func(string) reserve.Reserver { return limiter })))}
		get(client, "http://a")
		require.InDelta(t, 48, limiter.Rate(), 1e-9)
		for i := range 6000 {
			get(client, fmt.Sprintf("http://host%d", i%2))
		}
		require.Equal(t, 80., limiter.Rate())
	})
}

// The function that says a key's policy may itself use the transport.
func TestPolicyUsesTheTransport(t *testing.T) {
	bubble(t, answer, func(t *testing.T, base *http.Transport) {
		var client *http.Client
		ten := reserve.Must(pace.Bursty(10))
		limiters := keyed.New(func(host string) (*reserve.Policy, error) {
			if host == "a:80" {
				if _, err := get(client, "http://quotas"); err != nil {
					return nil, err
				}
			}
			return ten, nil
		})
		client = &http.Client{Transport: reserve.Must(New(base, nil, Adaptive(), PerKey(Host, limiters.For))), Timeout: time.Minute}
		status, err := get(client, "http://a")
		require.NoError(t, err)
		require.Equal(t, 200, status)
	})
}
