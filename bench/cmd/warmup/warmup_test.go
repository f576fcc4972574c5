package main

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// between counts the calls from the one second to the other.
func between(at []time.Duration, from, to float64) (n float64) {
	for _, t := range at {
		if t.Seconds() >= from && t.Seconds() < to {
			n++
		}
	}
	return n
}

func TestCallsFollowTheCurve(t *testing.T) {
	bursty, err := calls(contenders[0])
	require.NoError(t, err)
	require.Equal(t, 1500., between(bursty, 0, 15))
	require.Zero(t, between(bursty, 15, 22.5))
	require.Equal(t, 101., between(bursty, 22.5, 22.51)) // a second's worth, and the one that is prepaid

	warming, err := calls(contenders[1])
	require.NoError(t, err)
	for _, begin := range []float64{0, 42.5} { // fully cold
		require.InDelta(t, 34, between(warming, begin, begin+1), 2)      // a third of the rate
		require.InDelta(t, 500, between(warming, begin, begin+10), 1)    // a store of 1000, less the 500 of its second half
		require.InDelta(t, 100, between(warming, begin+11, begin+12), 1) // warm
	}
	require.InDelta(t, 52, between(warming, 22.5, 23.5), 3) // half cold, and rising
	require.Zero(t, between(warming, 32.5, 42.5))
}

func TestPictureIsWritten(t *testing.T) {
	out := filepath.Join(t.TempDir(), "warmup.png")
	var b bytes.Buffer
	require.NoError(t, run(&b, out))
	require.Contains(t, b.String(), "Picture: "+out)
	file, err := os.Open(out)
	require.NoError(t, err)
	defer file.Close()
	_, err = png.Decode(file)
	require.NoError(t, err)
}

func TestPictureThatCannotBeWritten(t *testing.T) {
	require.ErrorContains(t, run(&bytes.Buffer{}, t.TempDir()), "can't write the picture: open ")
}
