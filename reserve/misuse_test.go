package reserve_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
)

// Mistakes of a program panic with a text that names the mistake.
func TestMistakesAreNamed(t *testing.T) {
	ctx, good := context.Background(), pace.Must(pace.NewBursty(1))
	var none context.Context
	keys := keyed.New(func(string) (*reserve.Policy, error) { return pace.Bursty(1) })
	notMade := "pace: a nil or zero Limiter: make it with a constructor such as pace.NewBursty, and look at its error"
	noContext := "pace: the context is nil: use context.Background()"
	for _, limiter := range []*reserve.Limiter{nil, {}} {
		for name, use := range map[string]func(){
			"Acquire":       func() { limiter.Acquire(ctx, 1) },
			"Wait":          func() { limiter.Wait(ctx) },
			"TryAcquire":    func() { limiter.TryAcquire(1) },
			"Allow":         func() { limiter.Allow() },
			"TakeUpTo":      func() { limiter.TakeUpTo(1) },
			"Reserve":       func() { limiter.Reserve(ctx, 1) },
			"ReserveWithin": func() { limiter.ReserveWithin(ctx, 1, 0) },
			"Rate":          func() { limiter.Rate() },
			"SetRate":       func() { limiter.SetRate(1) },
			"PauseUntil":    func() { limiter.PauseUntil(time.Now()) },
			"Snapshot":      func() { limiter.Snapshot() },
			"of reserve":    func() { reserve.Acquire(ctx, limiter, 1) },
		} {
			require.PanicsWithValue(t, notMade, use, name)
		}
	}
	require.PanicsWithValue(t, noContext, func() { good.Acquire(none, 1) })
	require.PanicsWithValue(t, noContext, func() { good.Wait(none) })
	require.PanicsWithValue(t, noContext, func() { good.ReserveWithin(none, 1, 0) })
	require.PanicsWithValue(t, noContext, func() { keys.Acquire(none, "a", 1) })
	require.PanicsWithValue(t, "pace: Acquire of a nil Reserver", func() { reserve.Acquire(ctx, nil, 1) })
	require.True(t, good.Allow(), "a panic takes nothing")
}
