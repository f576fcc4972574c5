package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/bench/internal/peers"
)

func TestRatioIsOfNeighbours(t *testing.T) {
	m := measured{ // a machine that is twice as slow in the second round
		limiters: []string{peers.Clock, peers.Bursty, peers.XTime},
		ns: map[string][]float64{
			peers.Clock:  {20, 40, 20},
			peers.Bursty: {30, 60, 34},
			peers.XTime:  {80, 160, 80},
		},
		allocs: map[string]int64{},
	}
	require.InDelta(t, 1.5, m.ratio(peers.Bursty, peers.Clock), 1e-9)
	require.Equal(t, []string{peers.Bursty, "34.0", "38", "1.50", "0.38", "0"}, m.rows()[1])
}

func TestQuantile(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	require.Equal(t, []float64{1, 2, 3, 4, 5}, []float64{
		quantile(values, 0), quantile(values, 0.25), quantile(values, 0.5), quantile(values, 0.75), quantile(values, 1)})
	require.Equal(t, []float64{5, 1, 4, 2, 3}, values)
}

func TestMeasureFromSeveralGoroutines(t *testing.T) {
	ran := map[string]int{}
	op := peers.Op{Limiter: "a", Start: func() func(int) int {
		return func(n int) int {
			ran["calls"] += n
			return 0
		}
	}}
	m, err := measure([]peers.Op{op}, []int{1}, 2)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, m.limiters)
	require.Len(t, m.ns["a"], 2)
	require.Positive(t, ran["calls"])

	op.Start = func() func(int) int { return func(int) int { return 0 } }
	m, err = measure([]peers.Op{op}, []int{1, 8}, 1)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "a, 8 goroutines"}, m.limiters)

	op.Start = func() func(int) int { return func(int) int { return 1 } }
	_, err = measure([]peers.Op{op}, []int{1, 8}, 1)
	require.ErrorContains(t, err, "the benchmark of a failed")
}
