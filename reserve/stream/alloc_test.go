//go:build !race

package stream_test

import (
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/stream"
)

// zeros is a source without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// A Read or a Write that need not wait allocates nothing. (The race detector allocates by itself.)
func TestAllocations(t *testing.T) {
	buffer := make([]byte, 4096)
	for _, rate := range []float64{1e15, math.Inf(1)} {
		l := reserve.Must(pace.NewBursty(rate))
		r, w := stream.Reader(ctx, zeros{}, l), stream.Writer(ctx, io.Discard, l)
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = r.Read(buffer) }), "Read at %v/s", rate)
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = w.Write(buffer) }), "Write at %v/s", rate)
	}
}
