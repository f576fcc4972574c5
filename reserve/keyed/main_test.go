package keyed_test

import (
	"context"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"go.uber.org/goleak"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
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

// One is what the concrete type of For offers.
type one interface {
	reserve.Reserver
	Acquire(ctx context.Context, n int) (waited time.Duration, err error)
	TryAcquire(n int) bool
	Rate() float64
	SetRate(permitsPerSecond float64) error
	Retime(permitsPerSecond float64) error
	Stored() float64
	NextFree() time.Time
	PauseUntil(t time.Time)
	Resume()
}

func (b *bench) one(key string) one { return b.For(key).(one) }
