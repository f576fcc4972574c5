package outbound

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/window"
)

// refusedOnce is a server that refuses its first request for a second, and accepts the others with that body.
func refusedOnce(body string) tripper {
	first := true
	return func(*http.Request) (*http.Response, error) {
		response := ok(body)
		if first {
			first = false
			response.StatusCode = http.StatusTooManyRequests
			response.Header.Set("Retry-After", "1")
		}
		return response, nil
	}
}

// took is how long so many calls take, one after the other.
func took(t *testing.T, transport http.RoundTripper, calls int) time.Duration {
	begin := time.Now()
	for range calls {
		response, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "http://a/", nil))
		require.NoError(t, err)
		drain(response.Body)
	}
	return time.Since(begin)
}

// A window's calls are spaced by what they used, not by what they were thought to use.
func TestSpacingByUse(t *testing.T) {
	for used, want := range map[string]time.Duration{
		"used 100": time.Second / 6, "used 2000": 10 * time.Second / 3, "nothing": 5 * time.Second / 3,
	} {
		synctest.Test(t, func(t *testing.T) {
			tokens := Limit{Limiter: reserve.Must(window.New(60_000, time.Minute)), Cost: costs(1000), Used: usage}
			transport := reserve.Must(New(refusedOnce(used), nil, WithLimit(tokens), Adaptive()))
			took(t, transport, 2) // the refusal, and its second
			require.InDelta(t, 4*want, took(t, transport, 4), 0.02*float64(4*want), used)
		})
	}
}

// So they are by an estimate that has improved meanwhile.
func TestSpacingByRecost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := Limit{Limiter: reserve.Must(window.New(60_000, time.Minute)), Cost: costs(1000), Recost: costs(100)}
		transport := reserve.Must(New(refusedOnce(""), nil, WithLimit(tokens), Adaptive()))
		took(t, transport, 2)
		require.InDelta(t, 4*time.Second/6, took(t, transport, 4), float64(20*time.Millisecond))
	})
}

// A day's quota gets smaller: 10 of 1,000 go at once after a refusal.
func TestLongQuotasAreNotSpaced(t *testing.T) {
	for name, l := range map[string]*reserve.Limiter{
		"calendar": reserve.Must(calendar.New(1000, calendar.Daily(time.UTC, 0))), "window": reserve.Must(window.New(1000, 24*time.Hour)),
	} {
		synctest.Test(t, func(t *testing.T) {
			transport := reserve.Must(New(refusedOnce(""), l, Adaptive()))
			took(t, transport, 2)
			require.Zero(t, took(t, transport, 10), name)
			require.Less(t, l.Rate(), 1000./86_400, name)
		})
	}
}

// A key's window is spaced as well, and keeps its length.
func TestSpacingOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := keyed.New(func(string) (*reserve.Policy, error) { return window.Policy(10, time.Second) })
		transport := reserve.Must(New(refusedOnce(""), nil, PerKey(Host, keys.For), Adaptive()))
		took(t, transport, 2)
		require.InDelta(t, 4*time.Second/6, took(t, transport, 4), float64(20*time.Millisecond))
		require.Equal(t, 10., keys.For("a").(keyed.Limiter).Rate())
		require.InDelta(t, 6, transport.Snapshot().Limits[0].Rate, 0.1)
	})
}

// A new rate of the window ends its spacing, also for rates that are not lower than the old one.
func TestSpacingBeginsAnew(t *testing.T) {
	for _, rate := range []float64{8, 20} {
		synctest.Test(t, func(t *testing.T) {
			limiter := reserve.Must(window.New(10, time.Second))
			transport := reserve.Must(New(refusedOnce(""), limiter, Adaptive()))
			took(t, transport, 2)
			require.InDelta(t, time.Second/6, took(t, transport, 1), float64(5*time.Millisecond))
			require.NoError(t, limiter.SetRate(rate))
			require.Zero(t, took(t, transport, 5))
		})
	}
}

// Who waits for its turn in a window's spacing is told when that is.
func TestSpacingIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var until []time.Duration
		begin := time.Now()
		transport := reserve.Must(New(refusedOnce(""), reserve.Must(window.New(10, time.Second)), Adaptive(), WithHooks(Hooks{
			Waiting: func(_ *http.Request, why Waiting) { until = append(until, why.Until.Sub(begin)) },
		})))
		took(t, transport, 2)
		begin, until = time.Now(), nil
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { took(t, transport, 1) })
			synctest.Wait()
		}
		told := slices.Clone(until)
		all.Wait()
		require.Len(t, told, 4)
		for i, want := range ms(167, 333, 500, 667) {
			require.InDelta(t, want, told[i], float64(5*time.Millisecond), "%v", told)
		}
	})
}
