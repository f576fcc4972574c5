package pacetest_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/pacetest"
)

// The script goes before the limits, call by call, and costs nothing of them.
func TestScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := reserve.Must(pacetest.New(pacetest.Window(2, time.Second)))
		client := pacetest.Client(t, server)
		server.Script(
			pacetest.Answer{Refuse: true, After: 1500 * time.Millisecond},
			pacetest.Answer{},
			pacetest.Answer{Status: 418, Header: http.Header{"x-a": {"b"}}, Body: "tea"},
			pacetest.Answer{Drop: true},
			pacetest.Answer{Stall: time.Second},
		)
		begin := time.Now()
		get := func() (int, string, http.Header) {
			r, err := client.Post("http://a", "text/plain", nil) // it is not sent again by net/http
			if err != nil {
				return 0, "", nil
			}
			defer r.Body.Close()
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			return r.StatusCode, string(body), r.Header
		}
		status, _, header := get()
		require.Equal(t, 429, status)
		require.Equal(t, "2", header.Get("Retry-After"), "whole seconds")
		status, _, _ = get()
		require.Equal(t, 200, status)
		status, body, header := get()
		require.Equal(t, 418, status)
		require.Equal(t, "tea", body)
		require.Equal(t, "b", header.Get("X-A"))
		status, _, _ = get()
		require.Zero(t, status)
		require.Zero(t, time.Since(begin))
		status, _, _ = get()
		require.Equal(t, 200, status)
		require.Equal(t, begin.Add(time.Second), server.Calls()[4].At)
		require.Len(t, server.Refused(), 3)

		server.Stop(2 * time.Second)
		pass(500 * time.Millisecond)
		status, _, header = get()
		require.Equal(t, 429, status)
		require.Equal(t, "2", header.Get("Retry-After"))
		pass(1500 * time.Millisecond)
		status, _, _ = get()
		require.Equal(t, 200, status)
	})
}

// A client that goes away while the server stalls does not leave its place taken.
func TestStallEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := reserve.Must(pacetest.New(pacetest.InFlight(1)))
		client := pacetest.Client(t, server)
		server.Script(pacetest.Answer{Stall: time.Hour})
		client.Timeout = time.Second
		_, err := client.Get("http://a")
		require.Error(t, err)
		synctest.Wait() // until the server knows
		r, err := client.Get("http://a")
		require.NoError(t, err)
		r.Body.Close()
		require.Equal(t, 200, r.StatusCode)
		require.Equal(t, 1, server.MostInFlight())
	})
}

// Outside of a bubble, over a real network.
func TestOutside(t *testing.T) {
	server := reserve.Must(pacetest.New(pacetest.Window(2, time.Minute)))
	listening := httptest.NewServer(server)
	defer listening.Close()
	for _, want := range []int{200, 200, 429} {
		r, err := listening.Client().Get(listening.URL)
		require.NoError(t, err)
		r.Body.Close()
		require.Equal(t, want, r.StatusCode)
	}
	pacetest.NeverMoreThan(t, 2, time.Minute, server.Accepted())
}

// A listener that is closed accepts no connection, and nothing hangs.
func TestListenerCloses(t *testing.T) {
	l := pacetest.Listen()
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	_, err := l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = l.DialContext(t.Context(), "tcp", "a:80")
	require.True(t, errors.Is(err, net.ErrClosed))
	require.Equal(t, "pipe", l.Addr().Network()+l.Addr().String()[4:])
}
