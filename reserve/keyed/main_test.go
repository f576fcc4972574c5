package keyed_test

import (
	"context"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"go.uber.org/goleak"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/keys"
	"github.com/nextfree/pace/reserve/keyed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const s = time.Second

var ctx = context.Background()

// A bench is limiters by key on a fake clock, all of one bursty policy.
type bench struct {
	*clockwork.FakeClock
	*keyed.Limiters[string]
	begin time.Time
}

func bursty(rate float64, maxKeys int, opts ...reserve.Option) *bench {
	clock := clockwork.NewFakeClock()
	policy := reserve.Must(pace.Bursty(rate, append(opts, reserve.WithClock(clock))...))
	keys := keyed.New(func(string) (*reserve.Policy, error) { return policy, nil }, keyed.WithMaxKeys(maxKeys))
	return &bench{clock, keys, clock.Now()}
}

func (b *bench) one(key string) keyed.Limiter { return b.For(key).(keyed.Limiter) }

// hold holds permits of a key, as package inbound does.
func (b *bench) hold(key string, n int, maxWait time.Duration) (keys.Hold, error) {
	return keys.Of[string](b.Limiters).Hold(ctx, key, n, maxWait)
}
