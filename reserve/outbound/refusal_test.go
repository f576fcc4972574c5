package outbound

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// refuse answers 429, and with these headers.
func refuse(w http.ResponseWriter, lines ...string) { refuseWith(w, 429, lines...) }

func refuseWith(w http.ResponseWriter, status int, lines ...string) {
	for name, values := range headers(lines...) {
		w.Header()[name] = values
	}
	w.WriteHeader(status)
}

// A refusal stops everybody; those who queue go later, at the same distances.
func TestRefusalStopsAll(t *testing.T) {
	for _, c := range []struct {
		name string
		by   func() reserve.Reserver
		opts []Option
		want []time.Duration
	}{
		{"a limiter", func() reserve.Reserver { return evenly10() }, nil,
			ms(0, 100, 200, 2300, 2404, 2508)}, // the third is refused, and all promises are moved by 2 s
		{"a limiter that can't be paused", func() reserve.Reserver { return bare{evenly10()} }, nil,
			ms(0, 100, 200, 2200, 2300, 2400)},
		{"only who was refused", func() reserve.Reserver { return evenly10() }, []Option{PauseRefused()},
			ms(0, 100, 200, 300, 404, 508)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var j *journal
			bubble(t, func(w http.ResponseWriter, r *http.Request) {
				if j.note(r) == 3 {
					refuse(w, "Retry-After: 2")
				}
			}, func(t *testing.T, base *http.Transport) {
				j = newJournal()
				client := &http.Client{Transport: reserve.Must(New(base, c.by(), c.opts...))}
				require.Equal(t, map[int]int{200: 5, 429: 1}, getAll(client, "http://a", 6))
				for i, at := range j.times() {
					require.InDelta(t, c.want[i], at, float64(time.Millisecond))
				}
			})
		})
	}
}

// What is a refusal, and for how long it stops.
func TestWhatStops(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		lines  string
		want   time.Duration
	}{
		{"429", 429, "Retry-After: 7", 7 * time.Second},
		{"429 without a word", 429, "", 0}, // only the one that was refused waits
		{"429 with a time that has passed", 429, "Retry-After: 0", 0},
		{"429 with a malformed one", 429, "Retry-After: soon", 0},
		{"429 with another header's wait", 429, "X-RateLimit-Retry-After: 6", 6 * time.Second},
		{"529 with Retry-After", 529, "Retry-After: 5", 5 * time.Second},
		{"429 with RateLimit", 429, `RateLimit: "a";r=0;t=9`, 9 * time.Second},
		{"Retry-After goes before RateLimit", 429, "Retry-After: 3\nRateLimit: \"a\";r=0;t=9", 3 * time.Second},
		{"503 with Retry-After", 503, "Retry-After: 7", 7 * time.Second},
		{"503 without", 503, "", 0},
		{"500", 500, "Retry-After: 7", 0},
		{"301", 301, "Retry-After: 7", 0},
		{"200", 200, "Retry-After: 7", 0},
		{"403", 403, "", 0},
		{"403 with Retry-After", 403, "Retry-After: 7", 7 * time.Second},
		{"403 with nothing left", 403, "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 7", 7 * time.Second},
		{"200 with nothing left", 200, "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 7", 7 * time.Second},
		{"404 with nothing left", 404, "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 7", 7 * time.Second},
		{"302 with nothing left", 302, "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 7", 7 * time.Second},
		{"304 with nothing left", 304, "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 7", 7 * time.Second},
		{"200 with nothing left for a moment", 200, `RateLimit: "a";r=0;t=2`, 0},
		{"429 from a cache", 429, "Retry-After: 7\nAge: 3", 4 * time.Second},
		{"429 from a cache, for longer than its time", 429, "Retry-After: 7\nAge: 30", 0},
		{"403 with nothing left, and no time", 403, "X-RateLimit-Remaining: 0", time.Second},
		{"403 with nothing left, and a time that has passed", 403, "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 946684799", time.Second},
		{"403 with nothing left in draft 11, and no time", 403, `RateLimit: "a";r=0`, time.Second},
		{"403 with nothing but the time of a reset", 403, "X-RateLimit-Reset: 946684867", 67 * time.Second},
		{"403 as GitHub's ordinary ones", 403, "X-RateLimit-Remaining: 40\nX-RateLimit-Reset: 946684867", 0},
		{"more than is believed", 429, "Retry-After: 9223372037", 0},
		{"nothing left for very long", 200, "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 86400", 5 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := true
			bubble(t, func(w http.ResponseWriter, _ *http.Request) {
				if first {
					refuseWith(w, c.status, strings.Split(c.lines, "\n")...)
				}
				first = false
			}, func(t *testing.T, base *http.Transport) {
				limiter := reserve.Must(pace.NewBursty(1e9))
				transport := reserve.Must(New(base, limiter, WithRetries(1)))
				if c.want > time.Minute {
					transport = reserve.Must(New(base, limiter))
				}
				begin := time.Now()
				r := httptest.NewRequest(http.MethodGet, "http://a/", nil)
				response, err := reserve.Must(New(base, limiter)).RoundTrip(r)
				require.NoError(t, err)
				response.Body.Close()
				require.Equal(t, c.status, response.StatusCode)
				require.Zero(t, time.Since(begin))
				response, err = transport.RoundTrip(r)
				require.NoError(t, err)
				response.Body.Close()
				require.InDelta(t, c.want, time.Since(begin), 10)
			})
		})
	}
}

// Over a real connection, on a fake clock: the limiter is stopped for as long as the server's clock
// says.
func TestServerClockOverARealConnection(t *testing.T) {
	fake := clockwork.NewFakeClockAt(received)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", received.Add(-time.Hour).Format(http.TimeFormat))
		refuse(w, "Retry-After: "+received.Add(-time.Hour+time.Minute).Format(http.TimeFormat))
	}))
	defer server.Close()
	limiter := reserve.Must(pace.NewBursty(10, pace.WithBurst(0), reserve.WithClock(fake)))
	client := &http.Client{Transport: reserve.Must(New(nil, limiter, WithClock(fake)))}
	status, err := get(client, server.URL)
	require.NoError(t, err)
	require.Equal(t, 429, status)
	require.Equal(t, received.Add(time.Minute+100*time.Millisecond), limiter.NextFree())
}

// Whoever waits is refused when a stop makes it miss its deadline.
func TestStopPassesDeadline(t *testing.T) {
	for _, by := range []reserve.Reserver{nil, bare{}} {
		bubble(t, func(w http.ResponseWriter, _ *http.Request) { refuse(w, "Retry-After: 60") },
			func(t *testing.T, base *http.Transport) {
				by := by
				if by == nil {
					by = evenly10()
				} else {
					by = bare{evenly10()}
				}
				client := &http.Client{Transport: reserve.Must(New(base, by)), Timeout: 10 * time.Second}
				begin := time.Now()
				status, err := get(client, "http://a")
				require.NoError(t, err)
				require.Equal(t, 429, status)
				_, err = get(client, "http://a")
				var wait *reserve.WaitError
				require.ErrorAs(t, err, &wait)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Zero(t, time.Since(begin))
			})
	}
}

// More than WithMaxRetryAfter: the refusal is the answer, and the key is stopped for that long.
func TestMaxRetryAfter(t *testing.T) {
	for _, opts := range [][]Option{nil, {PauseRefused()}} {
		n := 0
		bubble(t, func(w http.ResponseWriter, _ *http.Request) {
			n++
			refuse(w, "Retry-After: 61")
		}, func(t *testing.T, base *http.Transport) {
			limiter := evenly10()
			begin := time.Now()
			client := &http.Client{Transport: reserve.Must(New(base, limiter, append(opts, WithRetries(5), WithMaxRetryAfter(time.Minute))...))}
			status, err := get(client, "http://a")
			require.NoError(t, err)
			require.Equal(t, 429, status)
			require.Equal(t, 1, n)
			require.Zero(t, time.Since(begin))
			if opts == nil {
				require.Equal(t, begin.Add(time.Minute+100*time.Millisecond), limiter.NextFree())
			}
		})
	}
}

// Retries: each pays, each waits its turn and the server's time, with the same body.
func TestRetries(t *testing.T) {
	for _, c := range []struct {
		name   string
		body   io.Reader // nil: none
		opts   []Option
		want   []time.Duration
		status int
	}{
		{"without a body", nil, []Option{WithRetries(5)}, ms(0, 1100, 2204), 200}, // 4 % slower after a refusal
		{"with GetBody", strings.NewReader("hello"), []Option{WithRetries(5)}, ms(0, 1100, 2204), 200},
		{"alone", strings.NewReader("hello"), []Option{WithRetries(5), PauseRefused()}, ms(0, 1000, 2000), 200},
		{"alone, adaptive", nil, []Option{WithRetries(5), PauseRefused(), Adaptive()},
			ms(0, 1000, 2000), 200},
		{"without GetBody", io.MultiReader(strings.NewReader("hello")), []Option{WithRetries(5)}, ms(0), 429},
		{"only one", nil, []Option{WithRetries(1)}, ms(0, 1100), 429},
		{"by default none", nil, nil, ms(0), 429},
	} {
		t.Run(c.name, func(t *testing.T) {
			var j *journal
			var bodies []string
			bubble(t, func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				bodies = append(bodies, string(b))
				if j.note(r) <= 2 {
					refuse(w, "Retry-After: 1")
					io.WriteString(w, strings.Repeat("no. ", 1000))
				}
			}, func(t *testing.T, base *http.Transport) {
				j = newJournal()
				dialed := 0
				dial := base.DialContext
				base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
					dialed++
					return dial(ctx, network, addr)
				}
				client := &http.Client{Transport: reserve.Must(New(base, evenly10(), c.opts...))}
				r, err := http.NewRequest(http.MethodPost, "http://a", c.body)
				require.NoError(t, err)
				response, err := client.Do(r)
				require.NoError(t, err)
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
				require.Equal(t, c.status, response.StatusCode)
				times := j.times()
				for i := range times {
					times[i] = times[i].Round(time.Millisecond)
				}
				require.Equal(t, c.want, times)
				for _, b := range bodies {
					require.Equal(t, bodies[0], b)
				}
				require.Equal(t, 1, dialed, "the connection is used again")
			})
		})
	}
}

// Where another attempt would come too late, the refusal is the answer, body and all.
func TestNoTimeForRetry(t *testing.T) {
	for _, opts := range [][]Option{{WithRetries(5)}, {WithRetries(5), PauseRefused()}, {WithRetries(5), Adaptive()}} {
		bubble(t, func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, "Retry-After: 30")
			io.WriteString(w, "no")
		}, func(t *testing.T, base *http.Transport) {
			begin := time.Now()
			client := &http.Client{Transport: reserve.Must(New(base, evenly10(), opts...)), Timeout: 10 * time.Second}
			response, err := client.Get("http://a")
			require.NoError(t, err)
			b, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			response.Body.Close()
			require.Equal(t, "no", string(b))
			require.Zero(t, time.Since(begin))
		})
	}
}

// Hooks are told of everything, under no lock: they may make requests themselves.
func TestHooks(t *testing.T) {
	n := 0
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {
		if n++; n == 1 {
			refuse(w, "Retry-After: 5")
		}
	}, func(t *testing.T, base *http.Transport) {
		var transport *Transport
		var log []string
		var lines strings.Builder
		deep := false
		within := func() {
			if !deep {
				deep = true
				response, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "http://a/", nil))
				require.NoError(t, err)
				response.Body.Close()
				deep = false
			}
		}
		transport = reserve.Must(New(base, evenly10(), WithRetries(1), Adaptive(),
			WithHooks(Hooks{
				Waited:  func(_ *http.Request, d time.Duration) { log = append(log, "waited "+d.String()) },
				Refused: func(*http.Request, error) { log = append(log, "refused"); within() },
				Throttled: func(r *http.Response, _ string, d time.Duration) {
					log = append(log, "throttled "+r.Status+" "+d.String())
				},
				RateChanged: func(_ *http.Request, _ string, from, to float64) {
					if to < from {
						log = append(log, "rate cut")
					}
					within()
				},
			}),
			WithLogger(slog.New(slog.NewTextHandler(&lines, nil)), time.Second)))
		status, err := get(&http.Client{Transport: transport}, "http://a")
		require.NoError(t, err)
		require.Equal(t, 200, status)
		require.Equal(t, []string{"waited 0s", "throttled 429 Too Many Requests 5s", "rate cut", "waited 5.166666667s"}, log[:4])
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = transport.RoundTrip(httptest.NewRequest(http.MethodGet, "http://a/", nil).WithContext(ctx))
		require.ErrorIs(t, err, context.Canceled)
		require.Contains(t, log, "refused")
		require.Equal(t, 1, strings.Count(lines.String(), "waited before sending a request"))
	})
}

// The log says a line a second at most, and how many others there would have been.
func TestLogIsLimited(t *testing.T) {
	bubble(t, answer, func(t *testing.T, base *http.Transport) {
		var mu sync.Mutex
		var lines strings.Builder
		limiter := evenly10()
		limiter.Acquire(t.Context(), 15)
		transport := reserve.Must(New(base, limiter, WithLogger(slog.New(slog.NewTextHandler(writer(func(b []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return lines.Write(b)
		}), nil)), time.Second)))
		getAll(&http.Client{Transport: transport}, "http://a", 21)
		require.Equal(t, 4, strings.Count(lines.String(), "\n"), lines.String())
		require.Equal(t, 2, strings.Count(lines.String(), "others=9"), lines.String())
		require.Contains(t, lines.String(), "wait=1.5s method=GET host=a others=0")
	})
}

// CloseIdleConnections is the caller's, and goes to the base.
func TestCloseIdleConnections(t *testing.T) {
	var b closer
	(&http.Client{Transport: reserve.Must(New(&b, nil))}).CloseIdleConnections()
	require.Equal(t, closer(1), b)
}

type closer int

func (c *closer) CloseIdleConnections()                           { *c++ }
func (c *closer) RoundTrip(*http.Request) (*http.Response, error) { return nil, errGone }

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// A permit that came due at a closed gate is given back: it has not been used.
func TestGateGivesBack(t *testing.T) {
	first := true
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {
		if first {
			first = false
			pass(50 * time.Millisecond)
			refuse(w, "Retry-After: 0.75")
		}
	}, func(t *testing.T, base *http.Transport) {
		limiter := reserve.Must(pace.NewBursty(10))
		require.Equal(t, map[int]int{200: 1, 429: 1}, getAll(&http.Client{Transport: reserve.Must(New(base, bare{limiter}))}, "http://a", 2))
		// The second was due at 0.1 s, and went at 0.8 s: 7 were stored then, and it took one.
		require.InDelta(t, 6, limiter.Stored(), 1e-6)
	})
}

// A server that counts in a sliding window refuses half of the calls of a client at exactly its
// rate, because the network delivers one a little later and the next a little earlier. A limit that
// was refused is eased for a while, and its rate stays.
func TestEased(t *testing.T) {
	var j *journal
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		if j.note(r) == 3 {
			refuse(w, "Retry-After: 2")
		}
	}, func(t *testing.T, base *http.Transport) {
		j = newJournal()
		limiter := evenly10()
		getAll(&http.Client{Transport: reserve.Must(New(base, limiter))}, "http://a", 900)
		times := j.times()
		for i := 4; i < 100; i++ {
			require.InDelta(t, 104*time.Millisecond, times[i]-times[i-1], float64(2*time.Millisecond))
		}
		require.Equal(t, 100*time.Millisecond, times[899]-times[898], "a minute later")
		require.Equal(t, 10., limiter.Rate())
	})
}
