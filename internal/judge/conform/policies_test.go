package conform

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/internal/redis"
	"github.com/nextfree/pace/internal/server"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/warmup"
)

// A version is a policy that a limiter of a key has in some processes, while others have another.
type version struct {
	name           string
	rate, capacity float64
	policy         *reserve.Policy
}

func randomVersion(random *rand.Rand, kind int, opts ...reserve.Option) version {
	rate := []float64{1, 3, 10, 100, 200, 1000.5}[random.IntN(6)]
	capacity := []float64{1, 5, 10, 100, 1000}[random.IntN(5)]
	v := version{name: fmt.Sprintf("%v/s of %v", rate, capacity), rate: rate, capacity: capacity}
	switch kind {
	case 0:
		v.policy = reserve.Must(pace.Bursty(rate, append(opts, pace.WithCapacity(capacity))...))
	case 1:
		burst := time.Duration(capacity / rate * 1e9).Round(time.Microsecond)
		v.name = fmt.Sprintf("%v/s in %v", rate, burst)
		v.policy = reserve.Must(pace.Bursty(rate, append(opts, pace.WithBurst(burst))...))
	default:
		period := []time.Duration{time.Second, 3 * time.Second}[random.IntN(2)]
		v.name, v.capacity = fmt.Sprintf("%v/s warming up in %v", rate, period), rate*period.Seconds()
		v.policy = reserve.Must(warmup.Policy(rate, period, opts...))
	}
	return v
}

// Two versions of a limiter have one key, as during a deploy. The script and a store's ledger decide the same, and
// neither grants more than the larger capacity above the larger rate.
func TestTwoPoliciesOfOneKey(t *testing.T) {
	client := &redis.Client{Addr: server.Start(t).Addr}
	defer client.Close()
	number := 0
	for name, kinds := range map[string][]int{"permits": {0}, "times": {1}, "both": {0, 1}, "warming up": {2}, "all": {0, 1, 2}} {
		for _, opts := range [][]reserve.Option{nil, {reserve.PayUpfront()}} {
			t.Run(fmt.Sprint(name, ", upfront ", len(opts) > 0), func(t *testing.T) {
				for seed := range uint64(max(15/min(3, limitertest.Slower), queues(t)/40)) {
					random := rand.New(rand.NewPCG(seed, 54))
					a := randomVersion(random, kinds[random.IntN(len(kinds))], opts...)
					b := randomVersion(random, kinds[random.IntN(len(kinds))], opts...)
					number++
					synctest.Test(t, func(t *testing.T) {
						defer client.Close() // the connections are the bubble's
						twoVersions(t, random, client, number, seed, [2]version{a, b})
					})
				}
			})
		}
	}
}

func twoVersions(t *testing.T, random *rand.Rand, client *redis.Client, number int, seed uint64, of [2]version) {
	what := fmt.Sprintf("seed %d, %s and %s", seed, of[0].name, of[1].name)
	store, key := shared.Memory(), fmt.Sprint("versions ", number)
	var script, journal [2]*shared.Limiter
	for i, v := range of {
		script[i] = reserve.Must(shared.New(bubbled{client}, key, v.policy, shared.WithTimeout(time.Hour)))
		journal[i] = reserve.Must(shared.NewIn(store, key, v.policy, shared.WithTimeout(time.Hour)))
	}
	rate, capacity := max(of[0].rate, of[1].rate), max(of[0].capacity, of[1].capacity)
	begin, sum, largest := time.Now(), 0.0, 0.0
	for i := range 150 {
		who := random.IntN(2)
		n := 1 + random.IntN(max(1, int(min(of[who].capacity, 20))))
		if random.IntN(20) == 0 {
			n *= 5
		}
		maxWait := time.Duration(0)
		if random.IntN(3) == 0 {
			maxWait = time.Duration(random.ExpFloat64() * 10 / of[who].rate * 1e9)
		}
		in, err := journal[who].ReserveWithin(t.Context(), n, maxWait)
		on, failed := script[who].ReserveWithin(t.Context(), n, maxWait)
		var refused [2]*reserve.WaitError
		if large := (*reserve.SizeError)(nil); errors.As(err, &large) {
			require.Equal(t, err, failed, "%s, operation %d", what, i)
		} else if err != nil || failed != nil {
			at := fmt.Sprintf("%s, operation %d: %d of version %d within %v, after %v", what, i, n, who, maxWait, time.Since(begin))
			require.ErrorAs(t, err, &refused[0], "%s: the store grants it; the script: %v", at, failed)
			require.ErrorAs(t, failed, &refused[1], "%s: the script grants it; the store: %v", at, err)
			requireNear(t, refused[0].Wait, refused[1].Wait, at)
		} else {
			requireNear(t, in.Delay(), on.Delay(), fmt.Sprintf("%s, operation %d: %d of version %d granted, after %v", what, i, n, who, time.Since(begin)))
			sum, largest = sum+float64(n), max(largest, float64(n))
			most := capacity + largest + rate*(time.Since(begin)+in.Delay()).Seconds() + 1e-3
			require.LessOrEqual(t, sum, most, what)
		}
		if random.IntN(2) == 0 {
			time.Sleep(time.Duration(random.ExpFloat64() * 10 / rate * 1e9).Round(time.Microsecond))
		}
	}
}

// requireNear allows for what is rounded, which is worth more at a lower rate.
func requireNear(t *testing.T, a, b time.Duration, what string) {
	require.InDelta(t, float64(a), float64(b), 1e4+1e-6*math.Abs(float64(a)), what)
}
