package outbound

import (
	"bytes"
	"io"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/window"
)

// A seen is what a hook was told, and when.
type seen struct {
	after time.Duration
	Waiting
}

type watcher struct {
	mu    sync.Mutex
	begin time.Time
	all   []seen
}

func (w *watcher) hooks() Hooks {
	w.begin = time.Now()
	return Hooks{Waiting: func(_ *http.Request, of Waiting) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.all = append(w.all, seen{time.Since(w.begin), of})
	}}
}

func fetch(t *testing.T, transport http.RoundTripper, url string, header ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := transport.RoundTrip(r)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

// A stop is told before the wait, whether a refusal or "Remaining: 0" began it, and no sooner than it begins.
func TestWaitingTellsStops(t *testing.T) {
	for name, headers := range map[string]map[string]string{
		"a refusal":    {"Retry-After": "240"},
		"nothing left": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "240"},
	} {
		t.Run(name, func(t *testing.T) {
			first := true
			bubble(t, func(w http.ResponseWriter, _ *http.Request) {
				if first {
					for name, value := range headers {
						w.Header().Set(name, value)
					}
					if name == "a refusal" {
						w.WriteHeader(429)
					}
				}
				first = false
			}, func(t *testing.T, base *http.Transport) {
				var told watcher
				var lines bytes.Buffer
				transport := reserve.Must(New(base, nil, WithHooks(told.hooks()),
					WithLimit(Limit{Name: "requests", Limiter: reserve.Must(pace.NewBursty(100))}),
					WithLogger(slog.New(slog.NewTextHandler(&lines, nil)), 5*time.Second)))
				fetch(t, transport, "http://api.test/")
				require.Empty(t, told.all, "it waited for nothing")
				done := make(chan struct{})
				go func() { fetch(t, transport, "http://api.test/"); close(done) }()
				time.Sleep(6 * time.Second)
				synctest.Wait()
				require.Equal(t, []seen{{0, Waiting{"requests", told.begin.Add(240 * time.Second), Stopped}}}, told.all)
				require.Contains(t, lines.String(), "limit=requests why=stopped")
				state := transport.Snapshot().Limits[0]
				require.Equal(t, told.begin.Add(240*time.Second).UnixNano(), state.StoppedUntil.UnixNano())
				require.Equal(t, 1, state.Waiting)
				require.Equal(t, "requests", state.Name)
				<-done
				require.Equal(t, 240*time.Second, time.Since(told.begin).Round(time.Second))
				require.Contains(t, lines.String(), "wait=4m0")
				state = transport.Snapshot().Limits[0]
				require.Zero(t, state.Waiting+state.InFlight)
				require.Zero(t, state.StoppedUntil)
			})
		})
	}
}

// A change of the reason is told within a second: here a stop comes while calls wait for the rate.
func TestWaitingTellsChanges(t *testing.T) {
	calls := 0
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls == 2 {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(429)
		}
	}, func(t *testing.T, base *http.Transport) {
		var told watcher
		transport := reserve.Must(New(base, reserve.Must(pace.NewBursty(.2)), WithHooks(told.hooks())))
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { fetch(t, transport, "http://api.test/") })
			synctest.Wait()
		}
		all.Wait()
		var last []seen
		for _, s := range told.all {
			if s.Why == Stopped {
				last = append(last, s)
			}
		}
		require.Len(t, last, 1)
		require.LessOrEqual(t, last[0].after, 6*time.Second)
		require.Equal(t, Paced, told.all[0].Why)
		require.Equal(t, told.begin.Add(5*time.Second), told.all[0].Until)
		require.Equal(t, told.begin.Add(10*time.Second), told.all[1].Until, "it is the second in the line")
	})
}

func TestWaitingTellsPlacesAndProbes(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, _ *http.Request) { time.Sleep(3 * time.Second) },
		func(t *testing.T, base *http.Transport) {
			for why, opts := range map[Why][]Option{
				Crowded: {WithMaxInFlight(1)},
				Probing: {Adaptive()},
			} {
				var told watcher
				transport := reserve.Must(New(base, reserve.Must(pace.NewBursty(math.Inf(1))), append(opts, WithHooks(told.hooks()))...))
				var all sync.WaitGroup
				for range 2 {
					all.Go(func() { fetch(t, transport, "http://api.test/") })
					synctest.Wait()
				}
				require.Equal(t, 1, transport.Snapshot().Limits[0].Waiting, why)
				require.Equal(t, 1, transport.Snapshot().Limits[0].InFlight, why)
				all.Wait()
				require.NotEmpty(t, told.all, why)
				require.Equal(t, why, told.all[0].Why)
				for _, later := range told.all[1:] { // the rate is found
					require.Equal(t, Paced, later.Why)
					require.Equal(t, 3*time.Second, later.after)
				}
			}
		})
}

// A key is shown, but no credential.
func TestSnapshotHidesCredentials(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {}, func(t *testing.T, base *http.Transport) {
		perSecond := reserve.Must(pace.Bursty(10))
		keys := keyed.New(func(string) (*reserve.Policy, error) { return perSecond, nil })
		transport := reserve.Must(New(base, nil, PerKey(func(r *http.Request) string { return r.Header.Get("X-Api-Key") }, keys.For)))
		fetch(t, transport, "http://api.test/", "X-Api-Key", "sk-0123456789")
		fetch(t, transport, "http://api.test/", "X-Api-Key", "ann")
		shown := map[string]bool{}
		for _, l := range transport.Snapshot().Limits {
			shown[l.Key] = true
			require.NotContains(t, l.Key, "0123456789")
			require.Equal(t, 10.0, l.Rate)
		}
		require.Len(t, shown, 2)
		require.True(t, shown["ann"])
	})
}

// A hook that panics reaches the caller in whose name it was called, from the timer too.
func TestWaitingPanics(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {}, func(t *testing.T, base *http.Transport) {
		transport := reserve.Must(New(base, reserve.Must(pace.NewBursty(1)), WithHooks(Hooks{
			Waiting: func(*http.Request, Waiting) { panic("a hook") },
		})))
		fetch(t, transport, "http://api.test/")
		require.PanicsWithValue(t, "a hook", func() { fetch(t, transport, "http://api.test/") })
		time.Sleep(5 * time.Second)
		fetch(t, transport, "http://api.test/")
		require.Zero(t, transport.Snapshot().Limits[0].Waiting)
	})
}

// The wait that was too long says which limit it was.
func TestWaitErrorNamesItsLimit(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {}, func(t *testing.T, base *http.Transport) {
		transport := reserve.Must(New(base, nil, WithMaxWait(time.Second),
			WithLimit(Limit{Name: "requests", Limiter: reserve.Must(pace.NewBursty(100))}),
			WithLimit(Limit{Name: "tokens", Limiter: reserve.Must(pace.NewBursty(10)), Cost: func(*http.Request) int { return 80 }}),
		))
		fetch(t, transport, "http://api.test/")
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api.test/", nil)
		require.NoError(t, err)
		_, err = transport.RoundTrip(r)
		var wait *reserve.WaitError
		require.ErrorAs(t, err, &wait)
		require.Equal(t, "tokens", wait.Limit)
	})
}

// A limit that can't tell when it has room is named too, if it is the only one.
func TestWaitErrorNamesASharedLimit(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {}, func(t *testing.T, base *http.Transport) {
		tokens := reserve.Must(shared.NewIn(shared.Memory(), "tokens", reserve.Must(window.Policy(1, time.Hour))))
		transport := reserve.Must(New(base, reserve.Must(pace.NewBursty(10)), WithMaxWait(time.Second),
			WithLimit(Limit{Name: "tokens", Limiter: tokens})))
		fetch(t, transport, "http://api.test/")
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api.test/", nil)
		require.NoError(t, err)
		_, err = transport.RoundTrip(r)
		var wait *reserve.WaitError
		require.ErrorAs(t, err, &wait)
		require.Equal(t, "tokens", wait.Limit)
	})
}
