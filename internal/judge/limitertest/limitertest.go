// Package limitertest is a limiter on a fake clock, for tests of limiters.
package limitertest

import (
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/warmup"
)

// A Bench is a limiter, its clock and the test that they are for.
type Bench struct {
	*testing.T
	*clockwork.FakeClock
	*reserve.Limiter
	Begin time.Time
}

// New makes a limiter on a fake clock, with that clock's option and then the other ones.
func New(t *testing.T, build func(...reserve.Option) (*reserve.Limiter, error), opts ...reserve.Option) *Bench {
	t.Helper()
	clock := clockwork.NewFakeClock()
	l, err := build(append([]reserve.Option{reserve.WithClock(clock)}, opts...)...)
	require.NoError(t, err)
	return &Bench{T: t, FakeClock: clock, Limiter: l, Begin: clock.Now()}
}

// Bursty makes a bursty limiter.
func Bursty(t *testing.T, rate float64, opts ...reserve.Option) *Bench {
	t.Helper()
	return New(t, func(o ...reserve.Option) (*reserve.Limiter, error) { return pace.NewBursty(rate, o...) }, opts...)
}

// TokenBucket makes a token bucket, full at the start.
func TokenBucket(t *testing.T, rate, capacity float64) *Bench {
	t.Helper()
	return New(t, func(o ...reserve.Option) (*reserve.Limiter, error) { return pace.NewTokenBucket(rate, capacity, o...) })
}

// WarmingUp makes a warming-up limiter, cold at the start.
func WarmingUp(t *testing.T, rate float64, period time.Duration, opts ...reserve.Option) *Bench {
	t.Helper()
	return New(t, func(o ...reserve.Option) (*reserve.Limiter, error) { return warmup.New(rate, period, o...) }, opts...)
}

// Take reserves n permits.
func (b *Bench) Take(n int) *reserve.Reservation {
	b.Helper()
	r, err := b.Reserve(b.Context(), n)
	require.NoError(b, err)
	require.Equal(b, n, r.Permits())
	return &r
}

// Waits reserves n permits, and checks for how long they have to be waited for.
func (b *Bench) Waits(n int, want time.Duration) *reserve.Reservation {
	b.Helper()
	r := b.Take(n)
	require.Equal(b, want.String(), r.Delay().String())
	return r
}

// At returns when a reservation may go, since the beginning.
func (b *Bench) At(r *reserve.Reservation) time.Duration { return r.At().Sub(b.Begin) }

// FreeAt returns when the next request would go, since the beginning.
func (b *Bench) FreeAt() time.Duration { return b.NextFree().Sub(b.Begin) }

// FreeIn returns when the next request would go, from now.
func (b *Bench) FreeIn() time.Duration { return b.NextFree().Sub(b.Now()) }

// Pause stops the limiter for d.
func (b *Bench) Pause(d time.Duration) { b.PauseUntil(b.Now().Add(d)) }
