package outbound

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/window"
)

// bucketOf5 is a server that takes 50 calls a second and 5 at once. It wants a second after a refusal.
type bucketOf5 struct {
	mu      sync.Mutex
	level   float64
	at      time.Time
	refused int
	keys    map[string]bool // that it limits; nil: all
}

func (s *bucketOf5) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(10 * time.Millisecond)
	defer time.Sleep(10 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys != nil && !s.keys[r.URL.Host] {
		return ok(""), nil
	}
	now := time.Now()
	s.level, s.at = min(5, s.level+50*now.Sub(s.at).Seconds()), now
	response := ok("")
	if s.level < 1 {
		s.refused++
		response.StatusCode = http.StatusTooManyRequests
		response.Header.Set("Retry-After", "1")
	} else {
		s.level--
	}
	return response, nil
}

// together makes calls from twenty goroutines, and returns how long they took and how many came back refused.
func together20(t *testing.T, tr http.RoundTripper, target string, calls int) (took time.Duration, lost int) {
	begin := time.Now()
	var all sync.WaitGroup
	var mu sync.Mutex
	for range 20 {
		all.Go(func() {
			for range calls / 20 {
				response, err := tr.RoundTrip(httptest.NewRequest(http.MethodGet, target, nil))
				if err != nil {
					t.Error(err)
					return
				}
				drain(response.Body)
				mu.Lock()
				if response.StatusCode != http.StatusOK {
					lost++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return time.Since(begin), lost
}

func fiftyAtOnce() reserve.Reserver { return reserve.Must(window.New(50, time.Second)) }

// A limit that is told as 50 in a second gives its burst up wherever it stands, at a server that takes 5 at once.
func TestToldWhereverItStands(t *testing.T) {
	perHost := func(policy *reserve.Policy) Option {
		hosts := keyed.New(func(string) (*reserve.Policy, error) { return policy, nil })
		return PerKey(Host, hosts.For)
	}
	bucket := reserve.Must(pace.TokenBucket(50, 50))
	for name, make := range map[string]func(base http.RoundTripper) (*Transport, error){
		"a window": func(base http.RoundTripper) (*Transport, error) {
			return New(base, fiftyAtOnce(), WithRetries(3))
		},
		"a token bucket": func(base http.RoundTripper) (*Transport, error) {
			return New(base, bucket.Limiter(), WithRetries(3))
		},
		"a key's window": func(base http.RoundTripper) (*Transport, error) {
			return New(base, nil, WithRetries(3), perHost(reserve.Must(window.Policy(50, time.Second))))
		},
		"a key's bucket": func(base http.RoundTripper) (*Transport, error) {
			return New(base, nil, WithRetries(3), perHost(bucket))
		},
		"in a store": func(base http.RoundTripper) (*Transport, error) {
			return New(base, reserve.Must(shared.NewIn(shared.Memory(), "api", bucket)), WithRetries(3))
		},
		"beside a day's quota": func(base http.RoundTripper) (*Transport, error) {
			day := reserve.Must(calendar.New(10_000, calendar.Daily(time.UTC, 0)))
			return New(base, reserve.All(fiftyAtOnce(), day), WithRetries(3))
		},
		"of a name": func(base http.RoundTripper) (*Transport, error) {
			return New(base, nil, WithRetries(3), WithLimit(Limit{Name: "requests", Limiter: fiftyAtOnce()}))
		},
		"an upstream's": func(base http.RoundTripper) (*Transport, error) {
			a := &url.URL{Scheme: "http", Host: "a"}
			return NewUpstreams(base, []Upstream{{Base: a, By: fiftyAtOnce()}}, WithRetries(3))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &bucketOf5{level: 5, at: time.Now()}
				took, lost := together20(t, reserve.Must(make(server)), "http://a/", 200)
				require.Zero(t, lost)
				require.LessOrEqual(t, server.refused, 20)   // a tenth: the first volley, and the trials after it
				require.Less(t, took, 5800*time.Millisecond) // 3.9 s, a stop, and 4 % slower
			})
		})
	}
}

// The limit of one key says nothing of another's. A limit that is Exact keeps what was told.
func TestToldOfOneKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &bucketOf5{level: 5, at: time.Now(), keys: map[string]bool{"a": true}}
		hosts := keyed.New(func(string) (*reserve.Policy, error) { return window.Policy(50, time.Second) })
		tr := reserve.Must(New(server, nil, WithRetries(3), PerKey(Host, hosts.For)))
		together20(t, tr, "http://a/", 100)
		took, _ := together20(t, tr, "http://b/", 40)
		require.Less(t, took, 100*time.Millisecond)
	})
	synctest.Test(t, func(t *testing.T) {
		server := &bucketOf5{level: 5, at: time.Now()}
		tr := reserve.Must(New(server, nil, WithLimit(Limit{Limiter: fiftyAtOnce(), Exact: true})))
		together20(t, tr, "http://a/", 20)
		time.Sleep(3 * time.Second)
		server.keys = map[string]bool{}
		took, _ := together20(t, tr, "http://a/", 40)
		require.Less(t, took, 100*time.Millisecond)
	})
}

// Calls that wait when the burst is given up are spaced as well, and so are they that come after a pause, up to what
// goes at once. A minute later, with a server that takes fifty, all is as told.
func TestToldSpacesWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &bucketOf5{level: 5, at: time.Now()}
		tr := reserve.Must(New(server, fiftyAtOnce(), WithRetries(3)))
		var all sync.WaitGroup
		for range 150 { // a hundred wait for the window
			all.Go(func() { drain(reserve.Must(tr.RoundTrip(httptest.NewRequest(http.MethodGet, "http://a/", nil))).Body) })
		}
		all.Wait()
		require.LessOrEqual(t, server.refused, 46)
		time.Sleep(10 * time.Second)
		took, _ := together20(t, tr, "http://a/", 20)
		require.InDelta(t, 17*.02, took.Seconds(), .05, "3 at once")

		server.keys = map[string]bool{}
		for range 70 {
			time.Sleep(time.Second)
			took, _ = together20(t, tr, "http://a/", 40)
		}
		require.Less(t, took, 100*time.Millisecond)
	})
}

// Where most calls are refused, the log and the Snapshot say once that the limit does not fit, until it does.
func TestToldDoesNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		server := &bucketOf5{level: 5, at: time.Now()}
		limiter := reserve.Must(window.New(500, 10*time.Second))
		tr := reserve.Must(New(server, limiter, PauseRefused(), WithLogger(slog.New(slog.NewTextHandler(&lines, nil)), time.Hour)))
		together20(t, tr, "http://a/", 20)
		require.Empty(t, tr.Snapshot().Limits[0].Misfit, "20 calls say nothing")
		server.level = -1e6
		together20(t, tr, "http://a/", 60)
		require.Regexp(t, "^told 500 in 10s; the server takes about [0-9]+ at once and [0-9.]+ a second$", tr.Snapshot().Limits[0].Misfit)
		require.Equal(t, 1, strings.Count(lines.String(), "does not fit"), lines.String())
		server.keys = map[string]bool{}
		together20(t, tr, "http://a/", 60)
		require.Empty(t, tr.Snapshot().Limits[0].Misfit)
	})
}
