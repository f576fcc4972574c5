package queue

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTotal(t *testing.T) {
	var sum Total
	for range 5 {
		sum.Add(math.MaxInt)
		require.Equal(t, math.MaxInt, sum.Int())
	}
	require.Equal(t, math.MaxInt, sum.Plus(sum).Int())
	for range 4 {
		sum.Add(-math.MaxInt)
		require.Equal(t, math.MaxInt, sum.Int())
	}
	sum.Add(-3)
	require.Equal(t, math.MaxInt-3, sum.Int())
	sum.Add(3 - math.MaxInt)
	require.Equal(t, Total{}, sum)
	sum.Add(1)
	require.Equal(t, 2, sum.Plus(sum).Int())
}
