package window_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

// BenchmarkCancels: 100,000 requests in a window's queue give up in random order. One operation is all of them.
func BenchmarkCancels(b *testing.B) {
	for b.Loop() {
		cancels(b, 100_000)
	}
}

// A queue that gives up in random order takes no time that grows with its square.
func TestCancelsInRandomOrder(t *testing.T) { cancels(t, 20_000) }

func cancels(t testing.TB, n int) {
	l := reserve.Must(window.New(10, time.Second, reserve.WithClock(clockwork.NewFakeClock())))
	cancel := make([]func(), n)
	for i := range cancel {
		r, err := l.Reserve(context.Background(), 1)
		require.NoError(t, err)
		cancel[i] = r.Cancel
	}
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(n) {
		cancel[i]()
	}
	require.Equal(t, 10., l.Stored())
}
