package pace_test

import (
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/judge/guava"
	"github.com/nextfree/pace/reserve"
)

func TestGuava(t *testing.T) {
	guava.Replay(t, func(t *testing.T, s *guava.Scenario) guava.Limiter {
		clock := clockwork.NewFakeClock()
		p, err := s.Policy(reserve.WithClock(clock))
		require.NoError(t, err)
		return guavas{p.Limiter(), clock, clock.Now()}
	})
}

// guavas is a limiter in the place of Guava's.
type guavas struct {
	*reserve.Limiter
	clock *clockwork.FakeClock
	begin time.Time
}

func (g guavas) Reserve(t *testing.T, n int, maxWait time.Duration) (time.Duration, bool) {
	r, err := g.ReserveWithin(t.Context(), n, maxWait)
	if err != nil {
		require.IsType(t, &reserve.WaitError{}, err)
		return 0, false
	}
	return r.Delay(), true
}

func (g guavas) SetRate(t *testing.T, rate float64) { require.NoError(t, g.Limiter.SetRate(rate)) }
func (g guavas) Stored(*testing.T) float64          { return g.Limiter.Stored() }
func (g guavas) Set(micros int64) {
	g.clock.Advance(g.begin.Add(guava.Micros(micros)).Sub(g.clock.Now()))
}
