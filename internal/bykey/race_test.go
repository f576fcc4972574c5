package bykey_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/watchdog"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
)

// All goroutines want the same new key at once: it gets one limiter, from one call of
// the policy function, and no permit is granted twice.
func TestTheSameNewKeyFromManyGoroutines(t *testing.T) {
	watchdog.Start(t)
	b := bursty(1, 1<<20, pace.WithCapacity(10), reserve.WithStored(10))
	policy := reserve.Must(pace.Bursty(1, reserve.WithClock(b.FakeClock), pace.WithCapacity(10), reserve.WithStored(10)))
	for round := range 50 {
		var calls, granted atomic.Int64
		keys := keyed.New(func(int) (*reserve.Policy, error) {
			calls.Add(1)
			return policy, nil
		}, keyed.WithMaxKeys(1))
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				if i%2 == 0 {
					if keys.TryAcquire(round, 1) {
						granted.Add(1)
					}
				} else if _, err := keys.ReserveWithin(ctx, round, 1, 0); err == nil {
					granted.Add(1)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 11, granted.Load(), "ten that are stored, and one that is prepaid")
		require.EqualValues(t, 1, calls.Load())
		require.Equal(t, 1, keys.Len())
	}
}

// Everything at once, on few keys, with little room and a clock that moves: what is
// counted is what is there, and what each key has been granted is never more than its limiter
// could give.
func TestEverythingAtOnce(t *testing.T) {
	watchdog.Start(t)
	const keysUsed, room, rate, steps = 40, 20, 1000, 2000
	b := bursty(rate, room, pace.WithCapacity(10))
	keys := keyed.New(func(int) (*reserve.Policy, error) {
		return pace.Bursty(rate, pace.WithCapacity(10), reserve.WithClock(b.FakeClock))
	}, keyed.WithMaxKeys(room))
	type outcome struct{ granted, givenBack atomic.Int64 }
	var outcomes [keysUsed]outcome
	var charges atomic.Int64 // they go past the room
	begin := b.Now()
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 0))
			type promise struct {
				*reserve.Reservation
				*outcome
			}
			var promises []promise
			for range steps {
				key := random.IntN(keysUsed)
				o := &outcomes[key]
				switch random.IntN(8) {
				case 0, 1, 2:
					if keys.TryAcquire(key, 1) {
						o.granted.Add(1)
					}
				case 3:
					if r, err := keys.ReserveWithin(ctx, key, 2, 0); err == nil {
						promises = append(promises, promise{&r, o})
						o.granted.Add(2)
					}
				case 4:
					if len(promises) > 0 {
						actual := 5 * random.IntN(2) // none were used, or more
						charges.Add(int64(actual))
						promises[0].Settle(actual)
						promises[0].givenBack.Add(2)
						promises = promises[1:]
					}
				case 5:
					_ = keys.For(key).(keyed.Limiter).Stored()
				case 6:
					keys.For(key).(keyed.Limiter).PauseUntil(b.Now().Add(1000))
				case 7:
					b.Advance(100_000)
				}
				assert.LessOrEqual(t, keys.Len(), room+int(charges.Load()))
			}
		})
	}
	all.Wait()
	entries, asks := inside(keys).Counted()
	require.Equal(t, keys.Len(), entries)
	require.Zero(t, asks)
	elapsed := b.Since(begin)
	b.Advance(1000 * s)
	inside(keys).Sweep()
	require.Zero(t, keys.Len())
	most := 10 + 2 + rate*elapsed.Seconds() // two may be prepaid
	var total int64
	for key := range outcomes {
		granted, givenBack := outcomes[key].granted.Load(), outcomes[key].givenBack.Load()
		total += granted
		require.LessOrEqual(t, float64(granted-givenBack), most, key)
	}
	require.Greater(t, total, int64(steps))
}
