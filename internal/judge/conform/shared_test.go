package conform

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
)

// A sharedSubject is a limiter whose state is in a store, in a bubble.
type sharedSubject struct {
	realSubject
	limiter *shared.Limiter
}

func (k kind) shared(tb testing.TB) *sharedSubject {
	p, err := k.policy()
	require.NoError(tb, err)
	l, err := shared.NewIn(shared.Memory(), key, p)
	require.NoError(tb, err)
	return &sharedSubject{realSubject: realSubject{begin: time.Now()}, limiter: l}
}

func (s *sharedSubject) advance(d time.Duration) { time.Sleep(d) }

func (s *sharedSubject) reserve(n int, maxWait time.Duration) (int, time.Duration, bool) {
	r, err := s.limiter.ReserveWithin(context.Background(), n, maxWait)
	return s.hold(&r, err)
}

func (s *sharedSubject) tryAcquire(n int) bool {
	return reserve.Must(s.limiter.TryAcquire(context.Background(), n))
}

func (s *sharedSubject) nextFree() time.Duration {
	return reserve.Must(s.limiter.NextFree(context.Background())).Sub(s.begin)
}

func (s *sharedSubject) stored() float64 { return reserve.Must(s.limiter.Stored(context.Background())) }

// ofShared are the kinds that a store can keep: they start full, and their clock counts microseconds.
func ofShared(kinds []kind) (all []kind) {
	for _, k := range kinds {
		k.grain = time.Microsecond
		if k.stored = math.Inf(1); k.unit == 1 {
			all = append(all, k)
		}
	}
	return all
}

// The arithmetic of a shared limiter, judged by the model as far as they are to agree. Promised times don't move, so
// nothing but the newest reservation is cancelled.
func TestSharedQueues(t *testing.T) {
	for name, kinds := range map[string][]kind{
		"paid later":               kinds(false),
		"paid upfront":             kinds(true),
		"warming up":               warming(false),
		"warming up, paid upfront": warming(true),
	} {
		for what, with := range map[string]features{"charges": charges, "undone": undoing} {
			t.Run(name+", "+what, func(t *testing.T) {
				kinds, sum := ofShared(kinds), &tally{T: t}
				for seed := range queues(t) {
					k := kinds[seed%len(kinds)]
					synctest.Test(t, func(t *testing.T) {
						j := newJudge(k, k.shared(t))
						j.run(randomBytes(uint64(seed)), with)
						sum.add(j)
					})
				}
				sum.check(0.001)
			})
		}
	}
}
