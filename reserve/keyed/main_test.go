package keyed_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"go.uber.org/goleak"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/keyhooks"
	"github.com/nextfree/pace/reserve/keyed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const s = time.Second

var ctx = context.Background()

// A byKey is limiters by key on a fake clock, all of one bursty policy.
type byKey struct {
	*clockwork.FakeClock
	*keyed.Limiters[string]
	begin time.Time
}

func bursty(rate float64, maxKeys int, opts ...reserve.Option) *byKey {
	clock := clockwork.NewFakeClock()
	policy := reserve.Must(pace.Bursty(rate, append(opts, reserve.WithClock(clock))...))
	keys := keyed.New(func(string) (*reserve.Policy, error) { return policy, nil }, keyed.WithMaxKeys(maxKeys))
	return &byKey{clock, keys, clock.Now()}
}

func (b *byKey) one(key string) keyed.Limiter { return b.For(key).(keyed.Limiter) }

// hold holds permits of a key, as package inbound does.
func (b *byKey) hold(key string, n int, maxWait time.Duration) (keyhooks.Hold, error) {
	return keyhooks.Of[string](b.Limiters).Hold(ctx, key, n, maxWait, false)
}

var inf = math.Inf(1)
