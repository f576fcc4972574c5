package shared_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/judge/guava"
	"github.com/nextfree/pace/reserve/shared"
)

func TestGuava(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		guava.Replay(t, func(t *testing.T, s *guava.Scenario) guava.Limiter {
			p, err := s.Policy()
			require.NoError(t, err)
			g := guavas{micros: new(int64)}
			g.Limiter = newShared(t, c, s.Name, p, shared.FakeTime(g.micros))
			if s.Kind == "bursty" { // Guava's begins with nothing
				_, err := c.Do(t.Context(), "SET", g.Key(), g.Empty(0, c.store != nil))
				require.NoError(t, err)
			}
			return g
		})
	})
}

// guavas is a shared limiter in the place of Guava's.
type guavas struct {
	*shared.Limiter
	micros *int64
}

func (g guavas) Reserve(t *testing.T, n int, maxWait time.Duration) (time.Duration, bool) {
	sale, err := g.Sell(n, max(0, int64(maxWait)))
	require.NoError(t, err)
	return time.Duration(sale.Wait), sale.Granted
}

func (g guavas) SetRate(t *testing.T, rate float64) {
	require.NoError(t, g.Limiter.SetRate(t.Context(), rate))
}

func (g guavas) Stored(t *testing.T) float64 {
	stored, err := g.Limiter.Stored(t.Context())
	require.NoError(t, err)
	return stored
}

func (g guavas) Set(micros int64) { *g.micros = micros }
