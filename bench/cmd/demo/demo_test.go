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
		got, err := callOnce(context.Background(), newClient(demo.Paced), server.URL)
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
	o := demo.Outcome{Name: demo.Unpaced, Took: 300 * time.Millisecond, Answered: 2, Longest: 200 * time.Millisecond}
	h := half{o, seen}
	require.Equal(t, []string{"unpaced", "stopped after 0.3 s", "2", "3", "1", "33 %", "0.2 s"}, h.Row())
	var b bytes.Buffer
	require.NoError(t, draw(&b, []half{h, h}))
	_, err := png.Decode(&b)
	require.NoError(t, err)
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	out := filepath.Join(t.TempDir(), "demo.png")
	require.ErrorIs(t, theDemo().Run(ctx, "127.0.0.1:0", out), context.Canceled)
	require.NoFileExists(t, out)
}
