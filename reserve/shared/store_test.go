package shared_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/internal/redis"
	"github.com/nextfree/pace/reserve/shared/internal/storetest"
)

// The arithmetic in Go and the script do the same to the last bit: the same sequences of all that a limiter can do give
// the same answers, and leave the same state.
func TestStoreAgreesWithScript(t *testing.T) {
	eachServer(t, func(t *testing.T, c *redis.Client) {
		operations := 0
		for name, policy := range policies {
			for seed := range uint64(queues(5)) {
				for _, pay := range [][]reserve.Option{nil, {reserve.PayUpfront()}} {
					what := fmt.Sprintf("%s, seed %d, %d options", name, seed, len(pay))
					operations += same(t, c, what, seed, func(rate float64) *reserve.Policy { return reserve.Must(policy(rate, pay...)) })
				}
			}
		}
		t.Logf("%d operations agree to the last bit", operations)
	})
}

func same(t *testing.T, c *redis.Client, what string, seed uint64, policy func(rate float64) *reserve.Policy) (operations int) {
	random := rand.New(rand.NewPCG(seed, 5))
	rates := []float64{0.3, 7, 100, 1000.5, 3e4}
	rate := rates[random.IntN(len(rates))]
	micros := int64(1_790_000_000_000_000)
	script := place{Client: c}
	store := place{store: shared.Memory()}
	both := [2][]*shared.Limiter{}
	for range 2 {
		both[0] = append(both[0], newShared(t, script, what, policy(rate), shared.FakeTime(&micros)))
		both[1] = append(both[1], newShared(t, store, what, policy(rate), shared.FakeTime(&micros)))
	}
	var held [][2]shared.Sale
	for i := range 120 {
		at := fmt.Sprintf("%s, operation %d", what, i)
		l := random.IntN(2)
		a, b := both[0][l], both[1][l]
		switch random.IntN(12) {
		case 0, 1, 2, 3:
			n, limit := 1+random.IntN(9), int64(math.MaxInt64)
			if random.IntN(2) == 0 {
				limit = int64(random.ExpFloat64() * 3e9 / rate)
			}
			one, err := a.Sell(n, limit)
			require.NoError(t, err, at)
			other, err := b.Sell(n, limit)
			require.NoError(t, err, at)
			require.Equal(t, one.Granted, other.Granted, at)
			require.Equal(t, one.Wait, other.Wait, at)
			if one.Granted {
				held = append(held, [2]shared.Sale{one, other})
			}
		case 4, 5, 6:
			micros += int64(random.ExpFloat64() * 4e6 / rate)
		case 7, 8, 9:
			if len(held) > 0 {
				j := random.IntN(len(held))
				if random.IntN(2) == 0 {
					j = max(0, len(held)-1-random.IntN(4))
				}
				keep := random.IntN(3)
				for _, s := range held[j] {
					s.Promise().Settle(keep)
				}
				held = append(held[:j:j], held[j+1:]...)
			}
		case 10:
			d := int64(random.ExpFloat64() * 4e9 / rate)
			switch random.IntN(6) {
			case 0:
				require.NoError(t, a.Pause(d))
				require.NoError(t, b.Pause(d))
			case 1:
				require.NoError(t, a.Pause(0))
				require.NoError(t, b.Pause(0))
			case 2:
				micros -= int64(random.ExpFloat64() * 1e6)
			case 3:
				rate := rates[random.IntN(len(rates))]
				require.NoError(t, a.SetRate(t.Context(), rate))
				require.NoError(t, b.SetRate(t.Context(), rate))
			}
		case 11:
			var limits []int64
			var permits []int
			for range 1 + random.IntN(5) {
				limits = append(limits, int64(random.ExpFloat64()*3e9/rate))
				permits = append(permits, 1+random.IntN(5))
			}
			one, err := a.SellList(limits, permits)
			require.NoError(t, err, at)
			other, err := b.SellList(limits, permits)
			require.NoError(t, err, at)
			for i := range one {
				require.Equal(t, one[i].Wait, other[i].Wait, at)
			}
		}
		one, err := script.Do(t.Context(), "GET", a.Key())
		require.NoError(t, err)
		other, err := store.Do(t.Context(), "GET", b.Key())
		require.NoError(t, err)
		if one != nil || other != "" {
			require.Equal(t, fmt.Sprintf("%x", one), fmt.Sprintf("%x", other), at)
		}
		operations++
	}
	return operations
}

// A limiter in memory is what one in Redis is, for a program's tests: shared by name.
func TestMemory(t *testing.T) {
	store := shared.Memory()
	policy := reserve.Must(policies["capacity"](1))
	one := reserve.Must(shared.NewIn(store, "api", policy))
	other := reserve.Must(shared.NewIn(store, "api", policy))
	granted := 0
	for range 10 {
		for _, l := range []*shared.Limiter{one, other} {
			ok, err := l.TryAcquire(t.Context(), 1)
			require.NoError(t, err)
			if ok {
				granted++
			}
		}
	}
	require.Equal(t, 8, granted, "7.5 stored, and one that is paid for later")
	k := reserve.Must(shared.NewKeyedIn(store, policy, shared.WithTimeout(time.Second)))
	ok, err := k.TryAcquire(t.Context(), "api", 1)
	require.NoError(t, err)
	require.False(t, ok)
	ok, err = k.TryAcquire(t.Context(), "other", 1)
	require.NoError(t, err)
	require.True(t, ok)

	_, err = shared.NewIn(nil, "api", policy)
	require.EqualError(t, err, "shared: store is <nil>; want a store")
	_, err = shared.NewKeyedIn(nil, policy)
	require.EqualError(t, err, "shared: store is <nil>; want a store")
}

// The suite of all stores.
func TestMemoryIsAStore(t *testing.T) {
	stores := map[*testing.T]shared.Store{}
	storetest.Run(t, func(t *testing.T) shared.Store {
		if stores[t] == nil {
			stores[t] = shared.Memory()
		}
		return stores[t]
	}, 200)
}
