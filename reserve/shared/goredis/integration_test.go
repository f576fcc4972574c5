package goredis_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/server"
	"github.com/nextfree/pace/internal/watchdog"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/goredis"
)

// patient is a time-out that no busy machine reaches.
var patient = shared.WithTimeout(10 * time.Second)

// permits is a store that starts full, and gets nothing to speak of while a test runs.
func permits(n float64, opts ...reserve.Option) *reserve.Policy {
	return reserve.Must(pace.Bursty(1e-6, append(opts, reserve.WithName("users"), pace.WithCapacity(n), reserve.WithStored(n), reserve.PayUpfront())...))
}

func newKeyed(t *testing.T, c redis.Scripter, p *reserve.Policy, opts ...shared.Option) *shared.Keyed {
	k, err := shared.NewKeyed(goredis.Client(c), p, append(opts, patient)...)
	require.NoError(t, err)
	return k
}

// storedUser is the key in Redis of a user of a policy with the name "users".
func storedUser(user string) string { return "pace:users:" + hashed(user) }

func hashed(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "{" + base64.RawURLEncoding.EncodeToString(sum[:16]) + "}"
}

// user is the key function of the tier that is shared.
func user(r *http.Request) (string, error) { return r.Header.Get("User"), nil }

// visit sends a user's request through a middleware, and returns what came of it.
func visit(m *inbound.Middleware, user string) string {
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("User", user)
	r.Header.Set("Accept", "text/plain")
	m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("served")) })).ServeHTTP(w, r)
	return fmt.Sprint(w.Code, " ", w.Body)
}

const (
	served   = "200 served"
	byUser   = "429 Too Many Requests (\"user\")"
	byGlobal = "429 Too Many Requests (\"global\")"
	failed   = "503 Service Unavailable. Try again" // it names no tier: none was violated
)

// A tier per user in Redis and a global one in this process: a refusal by either charges
// nothing to the other, in whichever order they are asked.
func TestInbound(t *testing.T) {
	for _, sharedFirst := range []bool{true, false} {
		eachServer(t, func(t *testing.T, c *redis.Client) {
			redisHas := func(user string) string {
				text, err := c.Get(t.Context(), storedUser(user)).Result()
				if errors.Is(err, redis.Nil) {
					return ""
				}
				require.NoError(t, err)
				return text
			}
			global := permits(5).Limiter()
			tiers := []inbound.Tier{
				inbound.PerKeyBy("user", user, newKeyed(t, c, permits(2))),
				inbound.GlobalBy("global", global),
			}
			if !sharedFirst {
				slices.Reverse(tiers)
			}
			m, err := inbound.New(tiers)
			require.NoError(t, err)

			require.Equal(t, served, visit(m, "abuser"))
			require.Equal(t, served, visit(m, "abuser"))
			before := redisHas("abuser")
			require.NotEmpty(t, before)
			for range 20 {
				require.Contains(t, visit(m, "abuser"), byUser)
			}
			require.InDelta(t, 3, global.Stored(), 1e-3, "two were served")
			require.Equal(t, before, redisHas("abuser"), "refusals write nothing")

			for _, name := range []string{"ann", "ann", "bob"} {
				require.Equal(t, served, visit(m, name))
			}
			for range 20 {
				require.Contains(t, visit(m, "late"), byGlobal)
			}
			require.InDelta(t, 0, global.Stored(), 1e-3)
			for name, want := range map[string]float64{"abuser": 0, "ann": 0, "bob": 1, "late": 2} {
				shot, err := newKeyed(t, c, permits(2)).Snapshot(t.Context(), name)
				require.NoError(t, err)
				require.InDelta(t, want, shot.Level, 1e-3, name)
			}
			if !sharedFirst {
				require.Empty(t, redisHas("late"), "Redis was never asked")
			}
			refused := map[string]uint64{}
			for _, tier := range m.Stats().Tiers {
				refused[tier.Name] = tier.Refused
				require.Zero(t, tier.Failed)
			}
			require.Equal(t, map[string]uint64{"user": 20, "global": 20}, refused)
		})
	}
}

// Redis is killed: the tier, and before it the limiter, do what they were told to.
func TestInboundWithoutRedis(t *testing.T) {
	for _, c := range []struct {
		name    string
		limiter shared.Option
		tier    []inbound.TierOption
		want    [2]string // of two requests
		failed  uint64    // times of the tier, as it sees it
		charged float64   // to the global tier
	}{
		{"closed", shared.FailClosed(), nil, [2]string{failed, failed}, 2, 0},
		{"the tier is open", shared.FailClosed(), []inbound.TierOption{inbound.FailOpen()}, [2]string{served, served}, 2, 2},
		{"a dry run", shared.FailClosed(), []inbound.TierOption{inbound.DryRun()}, [2]string{served, served}, 2, 2},
		{"the limiter is open", shared.FailOpen(), nil, [2]string{served, served}, 0, 2},
		{"the limiter is local", shared.Local(1), nil, [2]string{served, byUser}, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := server.Start(t)
			global := permits(9).Limiter()
			one := reserve.Must(pace.Bursty(1e-6, pace.WithCapacity(0), reserve.WithName("users"))) // one, and the next in 11 days
			var why []error
			m, err := inbound.New([]inbound.Tier{
				inbound.GlobalBy("global", global),
				inbound.PerKeyBy("user", user, newKeyed(t, connect(t, s), one, c.limiter), c.tier...),
			}, inbound.WithOnFailure(func(_ *http.Request, err *inbound.TierError) { why = append(why, err) }))
			require.NoError(t, err)
			require.Equal(t, served, visit(m, "before"))

			s.Kill()
			for _, want := range c.want {
				require.Contains(t, visit(m, "ann"), want)
			}
			require.Equal(t, c.failed, m.Stats().Tiers[1].Failed)
			require.Len(t, why, int(c.failed))
			for _, err := range why {
				var unavailable *shared.UnavailableError
				require.ErrorAs(t, err, &unavailable)
				require.Equal(t, storedUser("ann"), unavailable.Key)
			}
			require.InDelta(t, 8-c.charged, global.Stored(), 1e-3)

			s.Restart() // in time: nobody has given up on it yet
			require.Equal(t, served, visit(m, "after"))
			require.Equal(t, c.failed, m.Stats().Tiers[1].Failed)
		})
	}
}

// The calls of two programs with one limiter: together they keep its rate.
func TestOutbound(t *testing.T) {
	watchdog.Start(t)
	eachServer(t, func(t *testing.T, c *redis.Client) {
		const interval, calls = 10 * time.Millisecond, 20
		var mu sync.Mutex
		var arrived []time.Duration
		begin := time.Now()
		srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			arrived = append(arrived, time.Since(begin))
		}))
		defer srv.Close()
		var all sync.WaitGroup
		for range 2 {
			l := newShared(t, c, "calls", reserve.Must(pace.Bursty(float64(time.Second/interval), pace.WithBurst(0))), patient)
			client := &http.Client{Transport: reserve.Must(outbound.New(srv.Client().Transport, l))}
			for range calls / 2 {
				all.Go(func() {
					response, err := client.Get(srv.URL)
					if err != nil {
						t.Error(err)
						return
					}
					_ = response.Body.Close()
				})
			}
		}
		all.Wait()
		require.Len(t, arrived, calls)
		for i, at := range arrived {
			// Later than its time is the machine's affair; earlier it can't be, but for what the
			// wall clock, which is the server's, is adjusted by meanwhile.
			require.GreaterOrEqual(t, at, time.Duration(i)*interval-time.Millisecond, "call %d", i)
		}
	})
}

// A call that is given up while it waits, or can't be made in time, is not charged in Redis,
// nor to the host's own limiter in this process.
func TestOutboundGivenUp(t *testing.T) {
	watchdog.Start(t)
	eachServer(t, func(t *testing.T, c *redis.Client) {
		srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the call was made") }))
		defer srv.Close()
		everybody := newShared(t, c, "calls", reserve.Must(pace.Bursty(1, pace.WithBurst(0))), patient)
		_, err := everybody.Reserve(t.Context(), 3600)
		require.NoError(t, err)
		mine := permits(5000).Limiter()
		cost := func(*http.Request) int { return 3600 }
		transport := reserve.Must(outbound.New(srv.Client().Transport, nil,
			outbound.WithLimit(outbound.Limit{Limiter: everybody, Cost: cost}),
			outbound.WithLimit(outbound.Limit{Limiter: mine, Cost: cost})))

		due := func() time.Duration {
			at, err := everybody.NextFree(t.Context())
			require.NoError(t, err)
			return time.Until(at)
		}
		const slack = 10 * time.Minute
		require.InDelta(t, time.Hour, due(), float64(slack))
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
		require.NoError(t, err)
		result := make(chan error)
		go func() {
			_, err := transport.RoundTrip(r)
			result <- err
		}()
		require.Eventually(t, func() bool { return due() > 2*time.Hour-slack }, 20*time.Second, time.Millisecond)
		require.InDelta(t, 5000, mine.Stored(), 1e-3, "charged when the call goes")
		cancel(gone)
		require.ErrorIs(t, <-result, gone)
		require.InDelta(t, time.Hour, due(), float64(slack))
		require.InDelta(t, 5000, mine.Stored(), 1e-3)

		client := &http.Client{Transport: transport, Timeout: time.Minute}
		_, err = client.Get(srv.URL)
		var wait *reserve.WaitError
		require.ErrorAs(t, err, &wait)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.InDelta(t, time.Hour, due(), float64(slack))
		require.InDelta(t, 5000, mine.Stored(), 1e-3)
	})
}

// All of a limiter in Redis and one in this process, in either order: all of them or none, also
// when Redis is gone.
func TestAllOrNone(t *testing.T) {
	for _, sharedFirst := range []bool{true, false} {
		t.Run(fmt.Sprint("shared first: ", sharedFirst), func(t *testing.T) {
			s := server.Start(t)
			ours, mine := newShared(t, connect(t, s), "ours", permits(10), patient), permits(10).Limiter()
			rs := []reserve.Reserver{ours, mine}
			if !sharedFirst {
				slices.Reverse(rs)
			}
			both := reserve.All(rs...)
			left := func(wantOurs, wantMine float64) {
				t.Helper()
				stored, err := ours.Stored(t.Context())
				require.NoError(t, err)
				require.InDelta(t, wantOurs, stored, 1e-3)
				require.InDelta(t, wantMine, mine.Stored(), 1e-3)
			}
			r, err := both.ReserveWithin(t.Context(), 4, 0)
			require.NoError(t, err)
			left(6, 6)
			r.Settle(3)
			r.Cancel() // does nothing
			left(7, 7)

			var wait *reserve.WaitError
			require.True(t, mine.TryAcquire(6))
			_, err = both.ReserveWithin(t.Context(), 2, 0) // too many for mine
			require.ErrorAs(t, err, &wait)
			left(7, 1)
			_, err = ours.Reserve(t.Context(), 7)
			require.NoError(t, err)
			_, err = both.ReserveWithin(t.Context(), 1, 0) // too many for ours
			require.ErrorAs(t, err, &wait)
			left(0, 1)

			waiting, err := both.ReserveWithin(t.Context(), 1, reserve.Forever)
			require.NoError(t, err)
			require.Greater(t, waiting.Delay(), time.Hour)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // not long enough: known at once
			defer cancel()
			require.ErrorAs(t, waiting.Wait(ctx), &wait)
			left(0, 1)

			s.Kill()
			_, err = both.ReserveWithin(t.Context(), 1, reserve.Forever)
			var unavailable *shared.UnavailableError
			require.ErrorAs(t, err, &unavailable)
			require.InDelta(t, 1, mine.Stored(), 1e-3)
		})
	}
}
