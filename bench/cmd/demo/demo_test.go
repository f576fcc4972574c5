package main

import (
	"bytes"
	"context"
	"image/png"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPortThatIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	out := filepath.Join(t.TempDir(), "demo.png")
	err = run(context.Background(), l.Addr().String(), out)
	require.ErrorContains(t, err, "can't start the API: listen tcp "+l.Addr().String())
	require.NotContains(t, err.Error(), "\n")
	require.NoFileExists(t, out)
}

func TestPictureThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	err := run(context.Background(), "127.0.0.1:0", dir)
	require.ErrorContains(t, err, "can't write the picture: open "+dir)
	require.NotContains(t, err.Error(), "\n")
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	out := filepath.Join(t.TempDir(), "demo.png")
	require.ErrorIs(t, run(ctx, "127.0.0.1:0", out), context.Canceled)
	require.NoFileExists(t, out)
}

func TestAPIRefusesWhatIsTooMuch(t *testing.T) {
	a := &api{}
	a.reset()
	now := time.Now()
	for range burst {
		require.False(t, a.refuse(now))
	}
	require.True(t, a.refuse(now))
	require.False(t, a.refuse(now.Add(time.Second/callsPerSecond)))
	require.Len(t, a.seen(), burst+2)
}

func TestCallOnce(t *testing.T) {
	for _, tt := range []struct {
		status     int
		retryAfter string
		want       time.Duration
		wantErr    string
	}{
		{200, "", 0, ""},
		{429, "1", time.Second, ""},
		{429, "soon", 0, `Retry-After: "soon"`},
		{500, "", 0, "500 Internal Server Error"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", tt.retryAfter)
			w.WriteHeader(tt.status)
		}))
		got, err := callOnce(context.Background(), newClient(paced), server.URL)
		if tt.wantErr == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, tt.wantErr)
		}
		require.Equal(t, tt.want, got)
		server.Close()
	}
}

func TestDraw(t *testing.T) {
	seen := []call{{at: 0}, {at: 99 * time.Millisecond, refused: true}, {at: 250 * time.Millisecond}}
	all, answered := count(seen)
	require.Equal(t, []float64{2, 0, 1}, all)
	require.Equal(t, []float64{1, 0, 1}, answered)

	h := half{name: unpaced, took: 300 * time.Millisecond, answered: 2, longest: 200 * time.Millisecond, seen: seen}
	require.Equal(t, []string{"unpaced", "stopped after 0.3 s", "2", "3", "1", "33 %", "0.2 s"}, h.row())
	var b bytes.Buffer
	require.NoError(t, draw(&b, []half{h, h}))
	_, err := png.Decode(&b)
	require.NoError(t, err)
}
