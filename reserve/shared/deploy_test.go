package shared_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/warmup"
)

// open returns a function that opens a limiter in one store, as deploys do one after the other, and two that ask it.
func open(t *testing.T) (deploy func(p *reserve.Policy), take func(tries int) int, wait func() time.Duration) {
	store := shared.Memory()
	var l *shared.Limiter
	deploy = func(p *reserve.Policy) {
		var err error
		l, err = shared.NewIn(store, "api", p)
		require.NoError(t, err)
	}
	take = func(tries int) (n int) {
		for range tries {
			ok, err := l.TryAcquire(t.Context(), 1)
			require.NoError(t, err)
			if ok {
				n++
			}
		}
		return n
	}
	wait = func() time.Duration {
		s, err := l.Snapshot(t.Context())
		require.NoError(t, err)
		return s.Wait
	}
	return deploy, take, wait
}

// 1,900 of 2,000 a day are used when a deploy lowers the quota: nothing of that is owed to the next days.
func TestDeployOfALowerQuota(t *testing.T) {
	for name, c := range map[string]struct {
		period calendar.Period
		wait   time.Duration
	}{
		"a day":   {calendar.Daily(time.UTC, 0), 24 * time.Hour},
		"an hour": {calendar.Every(time.Hour), time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				deploy, take, wait := open(t)
				deploy(reserve.Must(calendar.Policy(2000, calendar.Daily(time.UTC, 0))))
				require.Equal(t, 1900, take(1900))
				deploy(reserve.Must(calendar.Policy(100, c.period)))
				require.Zero(t, take(1))
				require.Equal(t, c.wait, wait())
				time.Sleep(c.wait)
				require.Equal(t, 100, take(200))
			})
		})
	}
}

// 10 a day are used up when a deploy raises the rate to 10 a second. A refused request finds that out, and it is
// written, so the time that it is told comes.
func TestDeployOfAHigherRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deploy, take, wait := open(t)
		deploy(reserve.Must(pace.TokenBucket(reserve.Per(10, 24*time.Hour), 10)))
		require.Equal(t, 10, take(20))
		deploy(reserve.Must(pace.TokenBucket(10, 100)))
		require.Zero(t, take(1))
		time.Sleep(wait())
		require.Equal(t, 1, take(1))
	})
}

// A warming-up limiter takes over what a bucket has stored, and the other way round: the same share of another store.
func TestDeployOfAWarmUp(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		bucket := reserve.Must(pace.Bursty(10, pace.WithCapacity(10)))
		warm := reserve.Must(warmup.Policy(10, time.Second)) // stores 10
		for name, of := range map[string][2]*reserve.Policy{"to": {bucket, warm}, "from": {warm, bucket}} {
			g := newGroup(t, c, "deploy "+name, 1, of[0])
			g.sell(4)
			to := newShared(t, c, "deploy "+name, of[1], shared.FakeTime(g.micros))
			stored, err := to.Stored(t.Context())
			require.NoError(t, err)
			require.InDelta(t, 6, stored, 1e-6)
		}
	})
}

// A value is kept for as long as any of the terms that it has had need: otherwise the slow ones found a full store.
func TestKeptForTheSlowest(t *testing.T) {
	for name, of := range map[string][2]*reserve.Policy{
		"bucket":   {reserve.Must(pace.TokenBucket(reserve.Per(10, 24*time.Hour), 10)), reserve.Must(pace.TokenBucket(10, 5))},
		"window":   {reserve.Must(window.Policy(10, 24*time.Hour)), reserve.Must(window.Policy(5, time.Second))},
		"calendar": {reserve.Must(calendar.Policy(10, calendar.FromFirst(24*time.Hour))), reserve.Must(calendar.Policy(5, calendar.FromFirst(time.Second)))},
	} {
		t.Run(name, func(t *testing.T) {
			s := &forgetful{now: time.Unix(1_790_000_000, 0)}
			take := func(p *reserve.Policy, n int) bool {
				l := reserve.Must(shared.NewIn(s, "api", p, shared.WithTimeout(time.Minute)))
				ok, err := l.TryAcquire(t.Context(), n)
				require.NoError(t, err)
				return ok
			}
			require.True(t, take(of[0], 10))
			for range 700 { // more than a journal has records
				take(of[1], 1)
				s.now = s.now.Add(2 * time.Second)
			}
			require.Greater(t, s.until.Sub(s.now), 23*time.Hour)
		})
	}
}

// A limiter whose arithmetic is another says so until Reset.
func TestDeployOfAnotherKind(t *testing.T) {
	for name, p := range map[string]*reserve.Policy{
		"window":   reserve.Must(window.Policy(100, time.Minute)),
		"calendar": reserve.Must(calendar.Policy(100, calendar.Every(time.Hour))),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := shared.Memory()
				for _, of := range []*reserve.Policy{reserve.Must(pace.TokenBucket(10, 10)), p} {
					l, err := shared.NewIn(store, "api", of, shared.FailOpen())
					require.NoError(t, err)
					if of == p {
						_, err = l.TryAcquire(t.Context(), 1)
						var config *shared.ConfigError
						require.ErrorAs(t, err, &config)
						require.NoError(t, l.Reset(t.Context()))
					}
					ok, err := l.TryAcquire(t.Context(), 1)
					require.NoError(t, err)
					require.True(t, ok)
				}
			})
		})
	}
}
