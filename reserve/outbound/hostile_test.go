package outbound

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/adapt"
	lim "github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve"
)

// Whatever a server's refusals say, over real connections: they are returned, and
// the key is stopped for no longer than WithMaxRetryAfter.
func TestHostileHeaders(t *testing.T) {
	var lines []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { refuse(w, lines...) }))
	defer server.Close()
	base := &http.Transport{MaxResponseHeaderBytes: 4 << 20}
	defer base.CloseIdleConnections()
	for name, header := range map[string][]string{
		"1e18":                   {"Retry-After: 1000000000000000000"},
		"as Go writes it":        {"Retry-After: 1e18"},
		"overflow":               {"Retry-After: 9223372037"},
		"a date long past":       {"Retry-After: Thu, 01 Jan 1970 00:00:00 GMT"},
		"a date far away":        {"Retry-After: Fri, 31 Dec 9999 23:59:59 GMT"},
		"an epoch":               {"Retry-After: 1795262460"},
		"negative":               {"Retry-After: -5"},
		"r=-1":                   {`RateLimit: "a";r=-1;t=1`},
		"t of 31 million years":  {`RateLimit: "a";r=0;t=999999999999999`},
		"q=1 in 31 years":        {`RateLimit-Policy: "a";q=1;w=999999999`},
		"a wrong Date":           {"Date: Thu, 01 Jan 1970 00:00:00 GMT", "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT"},
		"1 MB in one header":     {"Retry-After: " + strings.Repeat("1", 1<<20)},
		"1 MB of policies":       {"RateLimit-Policy: " + strings.Repeat(`"a";q=1;w=1, `, 80_000) + `"a";q=1;w=1`},
		"1 MB of other headers":  {"X-Noise: " + strings.Repeat("x", 1<<20), "Retry-After: 1"},
		"10,000 lines of limits": strings.Split(strings.Repeat("RateLimit: \"a\";r=0;t=9\n", 10_000)+"Retry-After: 1", "\n"),
	} {
		for _, opts := range [][]Option{nil, {Adaptive()}} {
			lines = header
			limiter := reserve.Must(pace.NewBursty(1e6))
			client := &http.Client{Transport: reserve.Must(New(base, limiter, append(opts, WithMaxRetryAfter(time.Minute))...))}
			status, err := get(client, server.URL)
			require.NoError(t, err, name)
			require.Equal(t, 429, status, name)
			require.Less(t, time.Until(limiter.NextFree()), time.Minute+time.Second, name)
			require.GreaterOrEqual(t, limiter.Rate(), 0.5, name)
		}
	}
}

// A storm: 3,000 requests are refused at once, and the rate is cut once.
func TestStorm(t *testing.T) {
	const requests = 3_000
	var arrived sync.WaitGroup
	arrived.Add(requests)
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		arrived.Done()
		arrived.Wait()
		refuse(w, "Retry-After: 1")
	}, func(t *testing.T, base *http.Transport) {
		arrived = sync.WaitGroup{} // of the bubble
		arrived.Add(requests)
		base.DisableKeepAlives = true
		limiter := reserve.Must(pace.NewBursty(1e6))
		var mu sync.Mutex
		changes := 0
		begin := time.Now()
		client := &http.Client{Transport: reserve.Must(New(base, limiter, Adaptive(), WithHooks(Hooks{
			RateChanged: func(*http.Request, string, float64, float64) {
				mu.Lock()
				defer mu.Unlock()
				changes++
			},
		})))}
		require.Equal(t, map[int]int{429: requests}, getAll(client, "http://a", requests))
		require.Equal(t, 1, changes)
		require.InDelta(t, 0.6e6, limiter.Rate(), 1)
		require.Less(t, limiter.NextFree().Sub(begin), 1100*time.Millisecond)
	})
}

// Bodies that are never read, never end, or come slowly: a retry does not wait for them.
func TestBodies(t *testing.T) {
	for name, write := range map[string]func(w http.ResponseWriter, r *http.Request){
		"never ends": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 4096)); err != nil {
					return
				}
			}
		},
		"never comes": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "10")
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
		"drips": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				w.Write([]byte("."))
				http.NewResponseController(w).Flush()
				pass(100 * time.Millisecond)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			bubble(t, func(w http.ResponseWriter, r *http.Request) {
				if n++; n > 3 {
					return
				}
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(429)
				write(w, r)
			}, func(t *testing.T, base *http.Transport) {
				begin := time.Now()
				status, err := get(&http.Client{Transport: reserve.Must(New(base, evenly10(), WithRetries(5)))}, "http://a")
				require.NoError(t, err)
				require.Equal(t, 200, status)
				require.LessOrEqual(t, time.Since(begin), 3*(time.Second+maxDrainTime))
			})
		})
	}
	t.Run("never read", func(t *testing.T) {
		bubble(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") },
			func(t *testing.T, base *http.Transport) {
				client := &http.Client{Transport: reserve.Must(New(base, evenly10(), Adaptive()))}
				ctx, cancel := context.WithCancel(t.Context())
				for range 100 {
					r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://a", nil)
					require.NoError(t, err)
					_, err = client.Do(r)
					require.NoError(t, err)
				}
				cancel() // whoever reads nothing keeps the connection, not more
				synctest.Wait()
			})
	})
}

// Connections that are dropped: while others wait, in the middle of a response, and before one.
func TestDroppedConnections(t *testing.T) {
	drop := func(w http.ResponseWriter, halfway bool) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		if halfway {
			io.WriteString(buf, "HTTP/1.1 429 Too Many\r\nRetry-After: 1\r\nContent-Le")
			buf.Flush()
		}
		conn.Close()
	}
	for _, opts := range [][]Option{nil, {Adaptive()}, {WithRetries(3)}} {
		for _, by := range []reserve.Reserver{nil, bare{}} {
			for _, halfway := range []bool{false, true} {
				bubble(t, func(w http.ResponseWriter, r *http.Request) { drop(w, halfway) },
					func(t *testing.T, base *http.Transport) {
						by := by
						if by != nil {
							by = bare{evenly10()}
						}
						require.Equal(t, map[int]int{0: 50}, getAll(&http.Client{Transport: reserve.Must(New(base, by, opts...))}, "http://a", 50))
					})
			}
		}
	}
}

// A server that closes every connection while half of its callers wait for the end
// of a stop: all come through.
func TestDroppedWhileStopped(t *testing.T) {
	var mu sync.Mutex
	conns := map[net.Conn]bool{}
	n := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if n++; n%2 == 0 {
			refuse(w, "Retry-After-Ms: 20")
		}
	}))
	server.Config.ConnState = func(c net.Conn, s http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		conns[c] = true
		if s == http.StateIdle {
			c.Close()
		}
	}
	server.Start()
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	limiter := reserve.Must(pace.NewBursty(1000, pace.WithBurst(0)))
	statuses := getAll(&http.Client{Transport: reserve.Must(New(base, limiter, WithRetries(100)))}, server.URL, 20)
	require.Equal(t, 20, statuses[200]+statuses[0])
	require.Positive(t, statuses[200])
}

// A server that is no HTTP server at all.
func TestGarbage(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			bufio.NewReader(c).ReadString('\n')
			io.WriteString(c, "429 \x00\xff\r\n\r\n")
			c.Close()
		}
	})
	defer served.Wait()
	defer l.Close()
	for range 3 {
		_, err := get(&http.Client{Transport: reserve.Must(New(nil, nil, Adaptive(), WithRetries(3)))}, "http://"+l.Addr().String())
		require.ErrorContains(t, err, "malformed HTTP")
	}
}

// A limiter whose controller is forgotten has its own rate again.
func TestForgottenController(t *testing.T) {
	fake := clockwork.NewFakeClock()
	limiter := reserve.Must(pace.NewBursty(10, pace.WithBurst(0), pace.WithClock(fake)))
	c := newController(lim.Of(limiter), true)
	c.change(func(r *adapt.Rate) { r.Refused(time.Now(), time.Now(), time.Now().Add(time.Second), false) })
	require.InDelta(t, 6, limiter.Rate(), 1e-9)
	reserve.Must(limiter.Reserve(t.Context(), 12))
	behind := reserve.Must(limiter.Reserve(t.Context(), 1))
	require.Equal(t, 2*time.Second, behind.Delay())
	c.restore()
	require.Equal(t, 10., limiter.Rate())
	require.Equal(t, 1200*time.Millisecond, behind.Delay(), "callers that wait go earlier, too")
}

// With no limiter and 1,000 hosts that refuse, nothing is remembered but the stops.
func TestManyHosts(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, _ *http.Request) { refuse(w, "Retry-After: 1") },
		func(t *testing.T, base *http.Transport) {
			base.DisableKeepAlives = true
			transport := reserve.Must(New(base, nil, PerKey(Host, func(string) reserve.Reserver { return bare{evenly10()} })))
			for i := range 1000 {
				status, err := get(&http.Client{Transport: transport}, fmt.Sprintf("http://host%d", i))
				require.NoError(t, err)
				require.Equal(t, 429, status)
			}
			transport.states.forget(transport.now())
			require.Len(t, transport.states.all(), 1000)
			pass(2 * time.Second)
			transport.states.forget(transport.now())
			require.Empty(t, transport.states.all())
		})
}
