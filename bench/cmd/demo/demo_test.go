package main

import (
	"bytes"
	"context"
	"image/png"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/bench/internal/demo"
)

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
		got, err := callOnce(context.Background(), newClients(paced)[0], server.URL)
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
	seen := []demo.Call{{At: 0}, {At: 99 * time.Millisecond, Refused: true}, {At: 250 * time.Millisecond}}
	h := half{demo.Outcome{Name: unlimited, Took: 300 * time.Millisecond, Answered: 2}, 3, seen}
	require.Equal(t, []string{"no limiter", "0.3 s", "stopped after 0.3 s", "2", "3", "1", "33 %"}, h.Row())
	require.Equal(t, 250*time.Millisecond, h.first(2))
	var b bytes.Buffer
	require.NoError(t, draw(&b, "title", []half{h, h}))
	_, err := png.Decode(&b)
	require.NoError(t, err)
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	out := filepath.Join(t.TempDir(), "demo.png")
	require.ErrorIs(t, oneProgram().Run(ctx, "127.0.0.1:0", out), context.Canceled)
	require.NoFileExists(t, out)
}
