package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

// The lid of a laptop is shut for eight hours: the monotonic clock stands still. A minute later at the latest, limiters
// know what the servers' clocks say.
func TestLidShut(t *testing.T) {
	ctx := context.Background()
	for name, of := range map[string]struct {
		limiter func() *reserve.Limiter
		stop    time.Duration // by a server, until an epoch
		lid     time.Duration
	}{
		"pause":  {func() *reserve.Limiter { return reserve.Must(pace.NewBursty(1)) }, time.Hour, 8 * time.Hour},
		"window": {func() *reserve.Limiter { return reserve.Must(window.New(1, 8*time.Hour)) }, 0, 8 * time.Hour},
		"bucket": {func() *reserve.Limiter { return reserve.Must(pace.NewTokenBucket(reserve.Per(1, time.Hour), 1)) }, 0, 8 * time.Hour},
	} {
		for _, how := range []string{"asleep", "asks again", "asks whether"} {
			t.Run(name+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := of.limiter()
					require.True(t, l.Allow())
					if of.stop > 0 {
						l.PauseUntil(time.Now().Add(of.stop).Round(0))
					}
					require.False(t, l.Allow())
					done := make(chan error, 1)
					if how == "asleep" {
						go func() { done <- l.Wait(ctx) }()
					}
					time.Sleep(90 * time.Second)
					engine.Suspend(of.lid)
					begin := time.Now()
					switch how {
					case "asleep":
						require.NoError(t, <-done)
					case "asks again":
						require.NoError(t, l.Wait(ctx))
					default:
						for !l.Allow() {
							time.Sleep(time.Second)
							require.Less(t, time.Since(begin), 2*time.Minute)
						}
					}
					require.LessOrEqual(t, time.Since(begin), time.Minute+time.Second)
				})
			})
		}
	}
}

// What nobody knows of a suspension does not end a wait.
func TestLidNotShut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := reserve.Must(pace.NewTokenBucket(reserve.Per(1, time.Hour), 1))
		require.True(t, l.Allow())
		begin := time.Now()
		require.NoError(t, l.Wait(context.Background()))
		require.Equal(t, time.Hour, time.Since(begin))
	})
}
