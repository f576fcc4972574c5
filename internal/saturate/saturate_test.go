package saturate_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/saturate"
)

func TestAdd(t *testing.T) {
	const most, least = math.MaxInt64, math.MinInt64
	for _, c := range []struct{ a, b, want int64 }{
		{1, 2, 3},
		{1, -2, -1},
		{most, 0, most},
		{most - 1, 1, most},
		{most, 1, most},
		{1, most, most},
		{most, most, most},
		{most, least, -1},
		{least, most, -1},
		{least + 1, -1, least},
		{least, -1, least},
		{-1, least, least},
		{least, least, least},
	} {
		require.Equal(t, c.want, saturate.Add(c.a, c.b), "%d + %d", c.a, c.b)
		require.Equal(t, time.Duration(c.want), saturate.Add(time.Duration(c.a), time.Duration(c.b)), "%d + %d", c.a, c.b)
	}
}
