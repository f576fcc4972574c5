package shared_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/redis"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/warmup"
)

// Granted at once and cancelled at once: everything comes back, in any order.
func TestGrantedAndCancelled(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		for seed := range uint64(10) {
			micros := int64(1_790_000_000_000_000)
			l := newShared(t, c, fmt.Sprint("cancelled ", seed), reserve.Must(pace.Bursty(10, pace.WithCapacity(20))), shared.FakeTime(&micros))
			var all []shared.Sale
			for range 20 {
				s, err := l.Sell(1, 0)
				require.NoError(t, err)
				require.True(t, s.Granted)
				all = append(all, s)
			}
			for _, i := range rand.New(rand.NewPCG(seed, 3)).Perm(20) {
				all[i].Promise().Cancel()
				all[i].Promise().Cancel() // does nothing
			}
			stored, err := l.Stored(t.Context())
			require.NoError(t, err)
			require.InDelta(t, 20, stored, 1e-9)
		}
	})
}

// Granted, then idle until the store has spilled, then all of it sold: permits cancelled
// only now have been sold already.
func TestCancelledAfterTheSpill(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		micros := int64(1_790_000_000_000_000)
		l := newShared(t, c, "spill", reserve.Must(pace.Bursty(1, pace.WithCapacity(5))), shared.FakeTime(&micros))
		sell := func(n int) shared.Sale {
			s, err := l.Sell(n, math.MaxInt64)
			require.NoError(t, err)
			return s
		}
		early := sell(4)
		micros += 2_000_000 // 3 stored
		half := sell(1)
		micros += 10_000_000
		require.Zero(t, sell(5).Wait)
		early.Promise().Cancel()
		half.Promise().Cancel()
		stored, err := l.Stored(t.Context())
		require.NoError(t, err)
		require.Zero(t, stored)

		// In time: the permits that flowed in meanwhile fit no more.
		micros += 5_000_000
		late := sell(4) // 1 is left
		micros += 3_000_000
		sell(1) // and 3 left, at whose filling 1 would have spilled
		late.Promise().Cancel()
		stored, err = l.Stored(t.Context())
		require.NoError(t, err)
		require.InDelta(t, 4, stored, 1e-9)
	})
}

// A debt of years keeps its nanoseconds, as far as a double has them.
func TestLongDebt(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		micros := int64(1_790_000_000_000_000)
		l := newShared(t, c, "long", reserve.Must(pace.Bursty(0.7, pace.WithCapacity(0))), shared.FakeTime(&micros))
		_, err := l.Sell(123_456_789, math.MaxInt64)
		require.NoError(t, err)
		s, err := l.Sell(1, math.MaxInt64)
		require.NoError(t, err)
		require.InDelta(t, 123_456_789/0.7*1e9, s.Wait, 64)
	})
}

// A list is its requests one after the other, each with its own longest wait.
func TestList(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		micros := int64(1_790_000_000_000_000)
		p := reserve.Must(warmup.Policy(5, 2*time.Second))
		single, list := newShared(t, c, "single", p, shared.FakeTime(&micros)), newShared(t, c, "list", p, shared.FakeTime(&micros))
		random := rand.New(rand.NewPCG(7, 7))
		for range 30 {
			var permits []int
			var limits []int64
			for range 1 + random.IntN(8) {
				permits, limits = append(permits, 1+random.IntN(5)), append(limits, int64(random.ExpFloat64()*3e9))
			}
			sales, err := list.SellList(limits, permits)
			require.NoError(t, err)
			for i, s := range sales {
				one, err := single.Sell(permits[i], limits[i])
				require.NoError(t, err)
				require.Equal(t, one.Granted, s.Granted)
				require.InDelta(t, one.Wait, s.Wait, 1)
			}
			micros += int64(random.ExpFloat64() * 1e6)
		}
	})
}

// The server's clock is set back by an hour: the debt stays what it was, and nobody
// waits for the hour.
func TestClockSetBack(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		micros := int64(1_790_000_000_000_000)
		l := newShared(t, c, "back", reserve.Must(pace.Bursty(10, pace.WithBurst(0))), shared.FakeTime(&micros))
		for range 3 {
			_, err := l.Sell(1, math.MaxInt64)
			require.NoError(t, err)
		}
		micros -= 3_600_000_000
		for i := range 5 {
			s, err := l.Sell(1, math.MaxInt64)
			require.NoError(t, err)
			require.InDelta(t, 3e8+1e8*float64(i), s.Wait, 2)
		}
		micros += 800_000
		s, err := l.Sell(1, 0)
		require.NoError(t, err)
		require.True(t, s.Granted)
	})
}

// The server's clock is set back by an hour, as after a failover to a replica whose clock is behind, and callers only
// try: they get the rate from the first minute on.
func TestClockSetBackWithTriers(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		for name, opts := range map[string][]reserve.Option{"later": nil, "upfront": {reserve.PayUpfront()}} {
			for _, owed := range []int{10, 30} { // an empty store; and 2 s of debt
				micros := int64(1_790_000_000_000_000)
				l := newShared(t, c, fmt.Sprint("triers ", name, owed), reserve.Must(pace.Bursty(10, opts...)), shared.FakeTime(&micros))
				_, err := l.Sell(owed, math.MaxInt64)
				require.NoError(t, err)
				micros -= 3_600_000_000
				granted := 0
				for range 600 {
					micros += 100_000
					s, err := l.Sell(1, 0)
					require.NoError(t, err)
					if s.Granted {
						granted++
					}
				}
				require.InDelta(t, 600-(owed-10), granted, 2, "%s, %d sold", name, owed)
			}
		}
	})
}

// The key lives for as long as its debt and the time to fill.
func TestLifetime(t *testing.T) {
	eachServer(t, func(t *testing.T, c *redis.Client) {
		l := newShared(t, c, "life", reserve.Must(pace.Bursty(1, pace.WithCapacity(60))))
		_, err := l.Reserve(t.Context(), 160) // 60 stored, so 100 s of debt, and 60 s to fill
		require.NoError(t, err)
		millis, err := c.Do(t.Context(), "PTTL", l.Key())
		require.NoError(t, err)
		require.InDelta(t, 161_000, millis, 20_000)
	})
}

// A thousand calls at up to 3 million a second, in doubles that hold today's time: the rate is
// exact.
func TestRateIsExact(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		for _, rate := range []float64{30_011, 300_007, 3_000_017} {
			micros := int64(1_790_000_000_000_000)
			l := newShared(t, c, fmt.Sprint("exact ", rate), reserve.Must(pace.Bursty(rate, pace.WithBurst(0))), shared.FakeTime(&micros))
			begin, sold := micros, 0
			for range 1000 {
				s, err := l.Sell(int(rate/1000), math.MaxInt64)
				require.NoError(t, err)
				sold += int(rate / 1000)
				micros += s.Wait / 1000
			}
			s, err := l.Sell(1, math.MaxInt64)
			require.NoError(t, err)
			took := float64((micros-begin)*1000 + s.Wait)
			require.InDelta(t, float64(sold)/rate*1e9, took, 10)
		}
	})
}

// A call that comes after its time charges nothing.
func TestTooLate(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		micros := int64(1_790_000_000_000_000)
		l := newShared(t, c, "late", reserve.Must(pace.Bursty(1, pace.WithCapacity(3))), shared.FakeTime(&micros))
		_, err := l.Stored(t.Context()) // now the server's clock is known
		require.NoError(t, err)
		by := (micros % 1e12) * 1000
		late, err := l.SellUntil(3, by+5_000_000)
		require.NoError(t, err)
		require.False(t, late)
		micros += 6_000
		late, err = l.SellUntil(3, by+5_000_000)
		require.NoError(t, err)
		require.True(t, late)
		next, err := l.Sell(1, math.MaxInt64)
		require.NoError(t, err)
		require.Zero(t, next.Wait)
	})
}

// While two versions run, each with its own rate, stored permits scale with the store.
func TestRollingDeploy(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		micros := int64(1_790_000_000_000_000)
		before := newShared(t, c, "roll", reserve.Must(pace.Bursty(10)), shared.FakeTime(&micros))
		after := newShared(t, c, "roll", reserve.Must(pace.Bursty(40)), shared.FakeTime(&micros))
		s, err := before.Sell(5, 0)
		require.NoError(t, err)
		require.True(t, s.Granted)
		stored, err := after.Stored(t.Context())
		require.NoError(t, err)
		require.InDelta(t, 20, stored, 1e-9)
		_, err = after.Sell(30, 0)
		require.NoError(t, err)
		s, err = before.Sell(1, math.MaxInt64)
		require.NoError(t, err)
		require.InDelta(t, 0.25e9, s.Wait, 2) // 10 permits at the new rate
	})
}

func TestScriptFlush(t *testing.T) {
	eachServer(t, func(t *testing.T, c *redis.Client) {
		l := newShared(t, c, "flush", reserve.Must(pace.Bursty(0.001, pace.WithCapacity(2))))
		for range 3 {
			_, err := c.Do(t.Context(), "SCRIPT", "FLUSH")
			require.NoError(t, err)
			ok, err := l.TryAcquire(t.Context(), 1)
			require.NoError(t, err)
			require.True(t, ok)
		}
		ok, err := l.Allow(t.Context())
		require.NoError(t, err)
		require.False(t, ok)
	})
}

// A user who may use only the prefix.
func TestACL(t *testing.T) {
	eachServer(t, func(t *testing.T, c *redis.Client) {
		_, err := c.Do(t.Context(), "ACL", "SETUSER", "limiter", "on", ">secret", "~pace:*", "+eval", "+evalsha", "+get", "+set", "+time")
		require.NoError(t, err)
		mine := &redis.Client{Addr: c.Addr, Login: []string{"limiter", "secret"}}
		t.Cleanup(mine.Close)
		l := newShared(t, mine, "acl", reserve.Must(pace.Bursty(10)))
		r, err := l.Reserve(t.Context(), 30)
		require.NoError(t, err)
		r.Cancel()
		stored, err := l.Stored(t.Context())
		require.NoError(t, err)
		require.InDelta(t, 10, stored, 1e-6)

		l = newShared(t, mine, "acl", reserve.Must(pace.Bursty(10)), shared.WithPrefix("other"), shared.FailOpen())
		_, err = l.Reserve(t.Context(), 1)
		var refused *shared.ConfigError
		require.ErrorAs(t, err, &refused)
		require.ErrorContains(t, err, "NOPERM")
	})
}
