package inbound_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/watchdog"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
)

// server serves on a real connection.
func server(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv
}

// The first line reaches the client while the handler still runs: nothing is kept back.
func TestStreaming(t *testing.T) {
	watchdog.Start(t)
	more := make(chan struct{})
	m := build(t, []inbound.Tier{inbound.Global("global", bucket(1, 100))}, inbound.WithQueue(time.Minute, 1))
	srv := server(t, m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if err := control.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Error(err)
		}
		if err := control.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		for i := range 3 {
			fmt.Fprintf(w, "line %d\n", i)
			if err := control.Flush(); err != nil {
				t.Error(err)
			}
			<-more
		}
	})))
	res, err := srv.Client().Get(srv.URL)
	require.NoError(t, err)
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for i := range 3 {
		require.True(t, lines.Scan())
		require.Equal(t, fmt.Sprint("line ", i), lines.Text())
		more <- struct{}{}
	}
	require.False(t, lines.Scan())
	require.Contains(t, res.Header.Get("RateLimit"), `"global";r=`)
}

func TestHijacking(t *testing.T) {
	m := build(t, []inbound.Tier{inbound.Global("global", bucket(1, 100))})
	srv := server(t, m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		_, _ = rw.WriteString("echo " + line)
		_ = rw.Flush()
	})))
	r, err := http.NewRequest("GET", srv.URL, nil)
	require.NoError(t, err)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "echo")
	res, err := srv.Client().Do(r)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, res.StatusCode)
	conn := res.Body.(io.ReadWriteCloser)
	defer conn.Close()
	_, err = io.WriteString(conn, "hello\n")
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "echo hello\n", string(answer))
}

// The handler gets the writer and the request that came in, not others around them.
func TestNothingIsWrapped(t *testing.T) {
	w, r := httptest.NewRecorder(), get("ann", "/")
	called := false
	build(t, []inbound.Tier{inbound.Global("global", bucket(1, 1))}).Handler(http.HandlerFunc(func(w2 http.ResponseWriter, r2 *http.Request) {
		called = true
		require.Same(t, w, w2)
		require.Same(t, r, r2)
	})).ServeHTTP(w, r)
	require.True(t, called)
}

// Refused over a real connection, which is used again.
func TestRefusedOverAConnection(t *testing.T) {
	srv := server(t, build(t, []inbound.Tier{inbound.Global("global", bucket(1e-3, 0))}).Handler(ok))
	for _, method := range []string{"GET", "HEAD", "POST"} {
		r, err := http.NewRequest(method, srv.URL, nil)
		require.NoError(t, err)
		res, err := srv.Client().Do(r)
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		res.Body.Close()
		require.Equal(t, 429, res.StatusCode)
		require.Equal(t, method == "HEAD", len(body) == 0)
		require.NotEmpty(t, res.Header.Get("Retry-After"))
	}
}

func TestEndpoints(t *testing.T) {
	each := bucket(1e-6, 2)
	inside := build(t, []inbound.Tier{inbound.PerKey("endpoint", inbound.Endpoint, each)})
	mux := http.NewServeMux()
	plain := http.NewServeMux()
	for _, pattern := range []string{"GET /items/{id}", "POST /items/{id}", "/files/"} {
		mux.Handle(pattern, inside.Handler(ok))
		plain.Handle(pattern, ok)
	}
	outside := build(t, []inbound.Tier{inbound.PerKey("endpoint", reserve.Must(inbound.EndpointOf(plain)), each)})
	for name, h := range map[string]http.Handler{"inside": mux, "outside": outside.Handler(plain)} {
		for _, path := range []string{"GET /items/1", "POST /items/1", "GET /files/a"} {
			var verb, p string
			_, err := fmt.Sscan(path, &verb, &p)
			require.NoError(t, err)
			for i, want := range []int{200, 200, 429} {
				r := httptest.NewRequest(verb, fmt.Sprint(p, i), nil) // another path each time
				require.Equal(t, want, status(h, r), "%s: %s", name, path)
			}
		}
	}
	h := outside.Handler(plain)
	for i, want := range []int{404, 404, 429} { // requests to no endpoint share a key
		require.Equal(t, want, status(h, get("", fmt.Sprint("/nowhere/", i))))
	}

	// Endpoint outside of the mux is a mistake, and shows.
	var failed error
	wrong := build(t, []inbound.Tier{inbound.PerKey("endpoint", inbound.Endpoint, each)},
		inbound.WithOnFailure(func(_ *http.Request, err *inbound.TierError) { failed = err }))
	require.Equal(t, 503, status(wrong.Handler(plain), get("", "/items/1")))
	require.ErrorContains(t, failed, "inbound: the request has no pattern")
	_, err := inbound.EndpointOf(nil)
	require.ErrorContains(t, err, "inbound: EndpointOf is <nil>; want a ServeMux")
}

// Limiters shared between machines may look at the context: it is the request's.
func TestTheContextIsTheRequests(t *testing.T) {
	type key struct{}
	var got any
	m := build(t, []inbound.Tier{inbound.GlobalBy("global", reserverFunc(func(ctx context.Context) {
		got = ctx.Value(key{})
	}))})
	r := get("", "/")
	require.Equal(t, 200, status(m.Handler(ok), r.WithContext(context.WithValue(r.Context(), key{}, "trace"))))
	require.Equal(t, "trace", got)
}

type reserverFunc func(ctx context.Context)

func (f reserverFunc) ReserveWithin(ctx context.Context, _ int, _ time.Duration) (reserve.Reservation, error) {
	f(ctx)
	return reserve.All().ReserveWithin(ctx, 1, 0)
}
