package shared_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/internal/redis"
	"github.com/nextfree/pace/internal/server"
	"github.com/nextfree/pace/internal/smooth"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/warmup"
)

// eachServer runs a test on the server that there is, under its name: see [server.Program].
func eachServer(t *testing.T, test func(t *testing.T, c *redis.Client)) {
	t.Run(server.Program(), func(t *testing.T) { test(t, connect(t, server.Start(t))) })
}

// A place is where limiters of a test are kept: a server, or a store.
type place struct {
	*redis.Client
	store shared.Store // nil: the server
}

// long reports whether the long tests run: PACE_QUEUES is set, and says how many random queues of each kind.
func long() bool { return os.Getenv("PACE_QUEUES") != "" }

// queues is how many random queues a test plays.
func queues(n int) int {
	if more, err := strconv.Atoi(os.Getenv("PACE_QUEUES")); err == nil {
		return more
	}
	return n
}

// share is how much of n a test does here: all on a store of this process, a tenth on a server, which takes ten times
// as long. In long tests it is all.
func (p place) share(n int) int {
	if p.brief() {
		return max(1, n/10)
	}
	return n
}

// brief reports whether a test leaves out what it does on a store of this process as well, without the race detector.
func (p place) brief() bool { return (p.store == nil || limitertest.Slower > 1) && !long() }

// Do has DEL, SET and STRLEN of a store as well.
func (p place) Do(ctx context.Context, args ...any) (any, error) {
	if p.store == nil {
		return p.Client.Do(ctx, args...)
	}
	return shared.Tamper(p.store, args...)
}

// eachStore runs a test on the server that there is, and on a store of this process.
func eachStore(t *testing.T, test func(t *testing.T, c place)) {
	eachScript(t, test)
	t.Run("memory", func(t *testing.T) { test(t, place{store: shared.Memory()}) })
}

// eachScript is eachStore without the store: what a test is about is the script's, and not the ledger's.
func eachScript(t *testing.T, test func(t *testing.T, c place)) {
	eachServer(t, func(t *testing.T, c *redis.Client) { test(t, place{Client: c}) })
}

var policies = map[string]func(rate float64, more ...reserve.Option) (*reserve.Policy, error){
	"bursty": func(r float64, more ...reserve.Option) (*reserve.Policy, error) { return pace.Bursty(r, more...) },
	"no burst": func(r float64, more ...reserve.Option) (*reserve.Policy, error) {
		return pace.Bursty(r, append(more, pace.WithBurst(0))...)
	},
	"capacity": func(r float64, more ...reserve.Option) (*reserve.Policy, error) {
		return pace.Bursty(r, append(more, pace.WithCapacity(7.5))...)
	},
	"warm-up": func(r float64, more ...reserve.Option) (*reserve.Policy, error) {
		return warmup.Policy(r, 3*time.Second, more...)
	},
	"cold factor 8": func(r float64, more ...reserve.Option) (*reserve.Policy, error) {
		return warmup.Policy(r, 3*time.Second, append(more, warmup.WithColdFactor(8))...)
	},
}

// The script and smooth's ledger, side by side: reservations, refusals, and changes of rate. (What
// comes back can do less here: see TestGivingBack.)
func TestScriptAgreesWithSmooth(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		compared := 0
		for name, policy := range policies {
			for seed := range uint64(c.share(12)) {
				for _, pay := range [][]reserve.Option{nil, {reserve.PayUpfront()}} {
					what := fmt.Sprintf("%s, seed %d, %d options", name, seed, len(pay))
					compared += agree(t, c, what, seed, policy, pay)
				}
			}
		}
		t.Logf("%d operations agree to 1 ns", compared)
		require.Greater(t, compared, 800*c.share(12))
	})
}

func agree(t *testing.T, c place, what string, seed uint64, policy func(float64, ...reserve.Option) (*reserve.Policy, error), pay []reserve.Option) (compared int) {
	random := rand.New(rand.NewPCG(seed, 1))
	rates := []float64{0.3, 1, 7, 100, 1000.5, 3e4, 3e6}
	rate := rates[random.IntN(len(rates))]
	p, err := policy(rate, pay...)
	require.NoError(t, err)
	micros := int64(1_790_000_000_000_000)
	l := newShared(t, c, what, p, shared.FakeTime(&micros))
	terms := shared.Terms(p)
	begin := micros
	now := func() int64 { return (micros - begin) * 1000 }
	ledger := smooth.New(terms.Curve, 0, math.Inf(1), terms.Upfront)
	inPermits := terms.Curve.Fixed
	within := 1.0
	if c.store != nil {
		within = 3 // a ledger that is made again rounds again
	}
	for i := range 100 {
		at := fmt.Sprintf("%s, operation %d", what, i)
		switch random.IntN(10) {
		case 0, 1, 2, 3, 4:
			n, limit := 1+random.IntN(9), int64(math.MaxInt64)
			if random.IntN(2) == 0 {
				limit = int64(random.ExpFloat64() * 3e9 / rate)
			}
			latest := int64(math.MaxInt64)
			if limit < math.MaxInt64 {
				latest = now() + limit
			}
			_, ready, ok := ledger.Reserve(now(), n, latest)
			sale, err := l.Sell(n, limit)
			require.NoError(t, err, at)
			wait := max(0, ready-now())
			require.InDelta(t, wait, sale.Wait, within, at)
			if ok != sale.Granted {
				require.InDelta(t, limit, wait, 2, at) // on the edge: the rest can't be compared
				return compared
			}
		case 5, 6, 8:
			micros += int64(random.ExpFloat64() * 4e6 / rate)
		case 7:
			if random.IntN(10) == 0 {
				micros += 5_000_000
			}
		case 9:
			if random.IntN(5) == 0 {
				if inPermits && !ledger.Idle(now()) {
					continue // a ledger would move the times of what is owed, which were promised here
				}
				was := rate
				if rate = rates[random.IntN(len(rates))]; c.store != nil {
					within *= max(1, was/rate) // as permits, what was rounded is worth more at a lower rate
				}
				ledger.SetRate(now(), rate)
				require.NoError(t, l.SetRate(t.Context(), rate), at)
			}
		}
		stored, err := l.Stored(t.Context())
		require.NoError(t, err)
		require.InDelta(t, ledger.Stored(now()), stored, 1e-9+(3+within)*1e-9*rate, at)
		compared++
	}
	return compared
}
