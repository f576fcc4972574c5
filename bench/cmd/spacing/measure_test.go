package main

import (
	"bytes"
	"image/png"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// a result of five calls 1 ms apart, and a sixth with the fifth.
var sixCalls = result{
	name:     "test",
	interval: time.Millisecond,
	errors:   []time.Duration{0, 0, 0, 0, time.Millisecond},
	counted:  4 * time.Millisecond,
	calls:    6,
	cpu:      60 * time.Microsecond,
}

func TestResult(t *testing.T) {
	require.InDelta(t, 1250, sixCalls.reached(), 1e-9)
	require.InDelta(t, 25, sixCalls.offBy(), 1e-9)
	require.InDelta(t, 10, sixCalls.cpuPerCall(), 1e-9)
	require.Zero(t, sixCalls.quantile(0))
	require.Zero(t, sixCalls.p50())
	require.Zero(t, sixCalls.quantile(0.8))
	require.InDelta(t, 1000, sixCalls.quantile(0.81), 1e-9)
	require.InDelta(t, 1000, sixCalls.p99(), 1e-9)
}

func TestDrawReached(t *testing.T) {
	results := map[setting][]result{}
	for _, perSecond := range rates {
		for _, n := range goroutines {
			for range limiters {
				results[setting{perSecond, n}] = append(results[setting{perSecond, n}], sixCalls)
			}
		}
	}
	var b bytes.Buffer
	require.NoError(t, drawReached(&b, results))
	_, err := png.Decode(&b)
	require.NoError(t, err)
}
