package bykey_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"go.uber.org/goleak"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/bykey"
	"github.com/nextfree/pace/reserve"
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
	limiters := keyed.New(func(string) (*reserve.Policy, error) { return policy, nil }, keyed.WithMaxKeys(maxKeys))
	return &byKey{clock, limiters, clock.Now()}
}

func (b *byKey) one(key string) keyed.Limiter { return b.For(key).(keyed.Limiter) }

// inside returns the limiters as this package has them.
func inside[K comparable](k *keyed.Limiters[K]) *bykey.Limiters[K] { return (*bykey.Limiters[K])(k) }

func (b *byKey) Sweep()                       { inside(b.Limiters).Sweep() }
func (b *byKey) Promoted() int                { return inside(b.Limiters).Promoted() }
func (b *byKey) Counted() (entries, asks int) { return inside(b.Limiters).Counted() }
func (b *byKey) Has(key string) bool          { return inside(b.Limiters).Has(key) }

var inf = math.Inf(1)
