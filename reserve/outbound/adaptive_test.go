package outbound

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

var unknownRate = math.Inf(1)

// Those who queue when the rate is cut go at the new one, in their order.
func TestQueueIsRetimed(t *testing.T) {
	var j *journal
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		if j.note(r) == 2 {
			refuse(w, "Retry-After: 1")
		}
	}, func(t *testing.T, base *http.Transport) {
		j = newJournal()
		limiter := evenly10()
		client := &http.Client{Transport: reserve.Must(New(base, limiter, Adaptive()))}
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() { get(client, fmt.Sprintf("http://a/%d", i)) })
			synctest.Wait()
		}
		all.Wait()
		times := j.times()
		require.Equal(t, ms(0, 100), times[:2])
		// From here on at 6/s or soon a little more, after the stop; what the second had left to
		// pay, too.
		require.InDelta(t, 1100*time.Millisecond+time.Second*10/60, times[2], 10)
		for i := 3; i < len(times); i++ {
			require.InDelta(t, 172*time.Millisecond, times[i]-times[i-1], float64(10*time.Millisecond))
		}
		require.Equal(t, []string{"/0", "/1", "/2", "/3", "/4", "/5"}, j.order())
	})
}

// With no rate known, one request goes alone. The rate is what the server says.
func TestProbe(t *testing.T) {
	for _, c := range []struct {
		name    string
		by      func() reserve.Reserver
		header  string
		spacing time.Duration
	}{
		{"a limiter without limit", func() reserve.Reserver { return reserve.Must(pace.NewBursty(unknownRate, pace.WithBurst(0))) }, `RateLimit-Policy: "a";q=50;w=1`, time.Second / 49},
		{"one that has saved up", func() reserve.Reserver { return reserve.Must(pace.NewBursty(unknownRate)) }, `RateLimit-Policy: "a";q=50;w=1`, time.Second / 49},
		{"no limiter", func() reserve.Reserver { return nil }, `RateLimit-Policy: "a";q=50;w=1`, time.Second / 49},
		{"GitHub's headers", func() reserve.Reserver { return nil }, "X-RateLimit-Remaining: 300\nX-RateLimit-Reset: 60", time.Second * 100 / 98 / 5},
		{"a server that says nothing", func() reserve.Reserver { return nil }, "", time.Second / 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			var j *journal
			release := make(chan struct{})
			bubble(t, func(w http.ResponseWriter, r *http.Request) {
				if j.note(r) == 1 {
					<-release
				}
				refuseWith(w, 200, strings.Split(c.header, "\n")...)
			}, func(t *testing.T, base *http.Transport) {
				release = make(chan struct{})
				j = newJournal()
				client := &http.Client{Transport: reserve.Must(New(base, c.by(), Adaptive()))}
				done := make(chan map[int]int)
				go func() { done <- getAll(client, "http://a", 3) }()
				pass(10 * time.Second)
				require.Equal(t, ms(0), j.times(), "the probe is alone")
				close(release)
				require.Equal(t, map[int]int{200: 3}, <-done)
				times := j.times()
				require.InDelta(t, c.spacing, times[2]-times[1], float64(c.spacing/10))
			})
		})
	}
}

// A probe without an answer lets the others go. Before, 50 callers of a host that was down waited for each other's timeouts.
func TestProbeFails(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("RateLimit-Policy", `"a";q=50;w=1`)
	}, func(t *testing.T, base *http.Transport) {
		var n atomic.Int64
		hold := make(chan struct{})
		transport := reserve.Must(New(tripper(func(r *http.Request) (*http.Response, error) {
			if n.Add(1) <= 2 {
				select {
				case <-hold:
				case <-r.Context().Done():
				}
				return nil, errGone
			}
			return base.RoundTrip(r)
		}), nil, Adaptive()))
		client := &http.Client{Transport: transport}
		errs := make(chan error, 10)
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 5 {
			go func() {
				own := t.Context()
				if i == 3 {
					own = ctx // one that gives up while it waits for the probe
				}
				r, err := http.NewRequestWithContext(own, http.MethodGet, "http://a", nil)
				if err != nil {
					errs <- err
					return
				}
				response, err := client.Do(r)
				if err == nil {
					response.Body.Close()
				}
				errs <- err
			}()
			synctest.Wait()
		}
		require.Equal(t, int64(1), n.Load())
		cancel()
		require.ErrorIs(t, <-errs, context.Canceled)
		hold <- struct{}{}
		require.ErrorIs(t, <-errs, errGone)
		synctest.Wait()
		require.Equal(t, int64(4), n.Load(), "all others")
		hold <- struct{}{}
		for range 3 {
			err := <-errs
			require.True(t, err == nil || errors.Is(err, errGone))
		}
		require.Equal(t, int64(4), n.Load())
	})
}

// A probe that its caller gives up says nothing of the server: the next one is alone, too.
func TestProbeGivenUp(t *testing.T) {
	bubble(t, answer, func(t *testing.T, _ *http.Transport) {
		var n atomic.Int64
		transport := reserve.Must(New(tripper(func(r *http.Request) (*http.Response, error) {
			n.Add(1)
			<-r.Context().Done()
			return nil, r.Context().Err()
		}), nil, Adaptive()))
		ctx, cancel := context.WithCancel(t.Context())
		rest, end := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 4 {
			own := rest
			if i == 0 {
				own = ctx
			}
			all.Go(func() { transport.RoundTrip(httptest.NewRequestWithContext(own, http.MethodGet, "http://a/", nil)) })
			synctest.Wait()
		}
		require.Equal(t, int64(1), n.Load())
		cancel()
		synctest.Wait()
		require.Equal(t, int64(2), n.Load())
		end()
		all.Wait()
	})
}

// A rate that is set elsewhere is a new ceiling; a limiter that can't be set is left alone.
func TestCeiling(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("RateLimit-Policy", `"a";q=50;w=1`)
	}, func(t *testing.T, base *http.Transport) {
		limiter := evenly10()
		client := &http.Client{Transport: reserve.Must(New(base, limiter, Adaptive()))}
		get(client, "http://a")
		require.Equal(t, 10., limiter.Rate())
		require.NoError(t, limiter.SetRate(1000))
		get(client, "http://a")
		require.InDelta(t, 49, limiter.Rate(), 1e-9)
		require.NoError(t, limiter.SetRate(20))
		get(client, "http://a")
		require.Equal(t, 20., limiter.Rate())

		fixed := evenly10()
		status, err := get(&http.Client{Transport: reserve.Must(New(base, bare{fixed}, Adaptive()))}, "http://a")
		require.NoError(t, err)
		require.Equal(t, 200, status)
		require.Equal(t, 10., fixed.Rate())
	})
}

// Nothing left for a moment is no reason to stop: 500 requests to a server that says
// "0 left, for 1 s" whenever its bucket is empty go at its rate.
func TestNothingLeftForAMoment(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {
		refuseWith(w, 200, `RateLimit: "a";r=0;t=1`)
	}, func(t *testing.T, base *http.Transport) {
		limiter := reserve.Must(pace.NewBursty(50, pace.WithBurst(0)))
		begin := time.Now()
		require.Equal(t, map[int]int{200: 500}, getAll(&http.Client{Transport: reserve.Must(New(base, limiter))}, "http://a", 500))
		require.Equal(t, 499*20*time.Millisecond, time.Since(begin))

		get(&http.Client{Transport: reserve.Must(New(base, limiter, Adaptive()))}, "http://a")
		require.InDelta(t, 50*math.Exp(-0.1), limiter.Rate(), 1e-9, "a little less, where that is wanted")
	})
}

type tripper func(*http.Request) (*http.Response, error)

func (t tripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// A probe that is given up while it waits, and one that a cache answers, leave the next
// one to be it.
func TestProbeLeaves(t *testing.T) {
	answered := 0
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {
		if answered++; answered == 1 {
			w.Header().Set("Age", "60")
		}
		w.Header().Set("RateLimit-Policy", `"a";q=50;w=1`)
	}, func(t *testing.T, base *http.Transport) {
		limiter := reserve.Must(pace.NewBursty(unknownRate, pace.WithBurst(0)))
		limiter.PauseUntil(time.Now().Add(time.Second))
		begin := time.Now()
		transport := reserve.Must(New(base, limiter, Adaptive()))
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			_, err := transport.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "http://a/", nil))
			gone <- err
		}()
		synctest.Wait()
		done := make(chan map[int]int)
		go func() { done <- getAll(&http.Client{Transport: transport}, "http://a", 3) }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-gone, context.Canceled)
		require.Equal(t, map[int]int{200: 3}, <-done)
		require.InDelta(t, time.Second, time.Since(begin), float64(time.Millisecond))
		require.InDelta(t, 49, limiter.Rate(), 1e-9)
	})
}

// A server that has less left than a call costs delays the next call until its window ends, and no longer: at ten tokens
// a minute a call of 1,000 would take 1 h 40 min.
func TestLessLeftThanACall(t *testing.T) {
	for _, left := range []string{"1", "10", "999"} {
		synctest.Test(t, func(t *testing.T) {
			answered := 0
			base := tripper(func(r *http.Request) (*http.Response, error) {
				h := http.Header{}
				if answered++; answered == 3 {
					h.Set("RateLimit", `"tokens";r=`+left+`;t=60`)
				}
				return &http.Response{StatusCode: 200, Header: h, Body: http.NoBody, Request: r}, nil
			})
			tokens := Limit{
				Name: "tokens", Limiter: reserve.Must(pace.NewBursty(unknownRate)), Cost: func(*http.Request) int { return 1000 },
			}
			client := &http.Client{Transport: reserve.Must(New(base, nil, WithLimit(tokens), Adaptive()))}
			for range 3 {
				get(client, "http://a")
			}
			begin := time.Now()
			get(client, "http://a")
			require.InDelta(t, 60, time.Since(begin).Seconds(), 1)
			get(client, "http://a")
			require.Less(t, time.Since(begin), 62*time.Second)
		})
	}
}

// A server whose answers have too little left for a call, but no rate, accepts calls all the same: none waits for it.
func TestLessLeftThanACallWithoutARate(t *testing.T) {
	for _, ends := range []string{"1", "3600"} {
		synctest.Test(t, func(t *testing.T) {
			base := tripper(func(r *http.Request) (*http.Response, error) {
				h := http.Header{"Ratelimit": {`"tokens";r=900;t=` + ends}}
				return &http.Response{StatusCode: 200, Header: h, Body: http.NoBody, Request: r}, nil
			})
			tokens := Limit{
				Name: "tokens", Limiter: reserve.Must(pace.NewBursty(unknownRate)), Cost: func(*http.Request) int { return 1000 },
			}
			client := &http.Client{Transport: reserve.Must(New(base, nil, WithLimit(tokens), Adaptive()))}
			begin := time.Now()
			for range 10 {
				get(client, "http://a")
			}
			require.Less(t, time.Since(begin), time.Second)
		})
	}
}

// A large call among small ones costs a window's rest at most: at 700 tokens a minute one of 10,000 would take 14 min.
func TestLargeCallAtAWindowsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		base := tripper(func(r *http.Request) (*http.Response, error) {
			h := http.Header{}
			if calls == 31 {
				h.Set("RateLimit", `"tokens";r=700;t=60`)
			}
			return &http.Response{StatusCode: 200, Header: h, Body: http.NoBody, Request: r}, nil
		})
		tokens := Limit{Name: "tokens", Limiter: reserve.Must(pace.NewBursty(1000)), Cost: func(*http.Request) int {
			if calls++; calls == 31 {
				return 10_000
			}
			return 10
		}}
		client := &http.Client{Transport: reserve.Must(New(base, nil, WithLimit(tokens), Adaptive()))}
		for range 31 {
			get(client, "http://a")
		}
		begin := time.Now()
		get(client, "http://a")
		require.LessOrEqual(t, time.Since(begin), 70*time.Second)
	})
}

// A refusal at the end of a window does not cut the rate to what was left of it. 100 calls of 1,000 at once at 10,000 a
// minute take 12 min; they took 85.
func TestRefusedAtAWindowsEnd(t *testing.T) {
	for _, rate := range []float64{unknownRate, 100_000} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			left, begin := 10_000, time.Now()
			base := tripper(func(r *http.Request) (*http.Response, error) {
				time.Sleep(500 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				if time.Since(begin) >= time.Minute {
					left, begin = 10_000, time.Now()
				}
				status := 200
				if left -= 1000; left < 0 {
					left, status = left+1000, 429
				}
				ends := math.Ceil((time.Minute - time.Since(begin)).Seconds())
				h := http.Header{"Ratelimit": {fmt.Sprintf(`"tokens";r=%d;t=%v`, left, ends)}}
				return &http.Response{StatusCode: status, Header: h, Body: http.NoBody, Request: r}, nil
			})
			tokens := Limit{
				Name: "tokens", Limiter: reserve.Must(pace.NewBursty(rate)), Cost: func(*http.Request) int { return 1000 },
			}
			client := &http.Client{Transport: reserve.Must(New(base, nil, WithLimit(tokens), Adaptive(), WithRetries(20)))}
			first := time.Now()
			require.Equal(t, map[int]int{200: 100}, getAll(client, "http://a", 100))
			require.Less(t, time.Since(first), 13*time.Minute)
		})
	}
}
