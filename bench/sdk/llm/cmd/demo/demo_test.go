package main

import (
	"bytes"
	"context"
	"image/png"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/bench/internal/demo"
	"github.com/nextfree/pace/bench/sdk/llm/server"
)

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	out := filepath.Join(t.TempDir(), "demo.png")
	require.ErrorIs(t, theDemo().Run(ctx, "127.0.0.1:0", out), context.Canceled)
	require.NoFileExists(t, out)
}

func TestDraw(t *testing.T) {
	now := time.Now()
	seen := []server.Record{{At: now, Prompt: 3000}, {At: now.Add(10 * time.Millisecond), Refused: true},
		{At: now.Add(600 * time.Millisecond), Prompt: 1000, Reply: 500}}
	all, answered := demo.Count(calledAt(seen), step)
	require.Equal(t, []float64{2, 0, 1}, all)
	require.Equal(t, []float64{1, 0, 1}, answered)
	line := used(seen, 2*minute)
	require.InDelta(t, 1.5, line[0].Y, 1e-9)              // 3000 in 2 s
	require.InDelta(t, 2.25, line[len(line)/2-1].Y, 1e-9) // 4500
	require.InDelta(t, 0, line[len(line)-1].Y, 1e-9)      // over

	o := demo.Outcome{Name: demo.Paced, Took: time.Second, Answered: 2, Failed: 1, Longest: 300 * time.Millisecond}
	h := half{Outcome: o, charged: 4500, seen: seen, counts: server.Counts{Refused: 1, Prompt: 4000, Reply: 500}}
	require.Equal(t, []string{"paced", "stopped after 1.0 s", "2", "1", "3", "1", "4500", "4500", "0.3 s"}, h.Row())
	var b bytes.Buffer
	require.NoError(t, draw(&b, []half{h, h}))
	_, err := png.Decode(&b)
	require.NoError(t, err)
}
