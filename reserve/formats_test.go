package reserve_test

import (
	"context"
	"encoding/hex"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/warmup"
)

// What FORMATS.md shows is what is written, and can be read.
func TestFormats(t *testing.T) {
	begin := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for name, of := range map[string]struct {
		policy func(clock reserve.Option) (*reserve.Policy, error)
		use    func(l *reserve.Limiter, clock *clockwork.FakeClock)
		wait   time.Duration // for one permit
	}{
		"bursty": {
			policy: func(clock reserve.Option) (*reserve.Policy, error) { return pace.Bursty(3, clock) },
			use: func(l *reserve.Limiter, _ *clockwork.FakeClock) {
				l.TryAcquire(2) // 666,666,667 ns, rounded up by a third
				l.PauseUntil(begin.Add(time.Second))
			},
			wait: 1666666667,
		},
		"warmup": {
			policy: func(clock reserve.Option) (*reserve.Policy, error) {
				return warmup.Policy(2, 4*time.Second, clock, reserve.WithStored(6))
			},
			use: func(*reserve.Limiter, *clockwork.FakeClock) {},
		},
		"window": {
			policy: func(clock reserve.Option) (*reserve.Policy, error) { return window.Policy(5, time.Second, clock) },
			use: func(l *reserve.Limiter, clock *clockwork.FakeClock) {
				l.TryAcquire(3)
				clock.Advance(300 * time.Millisecond)
				l.TryAcquire(2)
				clock.Advance(100 * time.Millisecond)
			},
			wait: 600 * time.Millisecond,
		},
		"calendar": {
			policy: func(clock reserve.Option) (*reserve.Policy, error) {
				return calendar.Policy(20, calendar.Daily(time.UTC, 0), clock)
			},
			use:  func(l *reserve.Limiter, _ *clockwork.FakeClock) { l.TryAcquire(20) },
			wait: 12 * time.Hour,
		},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clockwork.NewFakeClockAt(begin)
			p, err := of.policy(reserve.WithClock(clock))
			require.NoError(t, err)
			l := p.Limiter()
			of.use(l, clock)
			state, err := l.AppendBinary(nil)
			require.NoError(t, err)
			vector := limitertest.Vector(t, name)
			require.Equal(t, hex.EncodeToString(vector), hex.EncodeToString(state))
			restored, err := p.Restore(vector)
			require.NoError(t, err)
			r, err := restored.Reserve(context.Background(), 1)
			require.NoError(t, err)
			require.Equal(t, of.wait, r.Delay())
		})
	}
}
