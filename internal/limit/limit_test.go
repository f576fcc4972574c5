package limit_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/pool"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/window"
)

// stands are the places where a policy's limiter may stand.
var stands = map[string]func(p *reserve.Policy) reserve.Reserver{
	"alone": func(p *reserve.Policy) reserve.Reserver { return p.Limiter() },
	"key": func(p *reserve.Policy) reserve.Reserver {
		return keyed.New(func(string) (*reserve.Policy, error) { return p, nil }).For("k")
	},
	"fair":  func(p *reserve.Policy) reserve.Reserver { return inFair(p.Limiter()) },
	"class": func(p *reserve.Policy) reserve.Reserver { return inFair(p.Limiter()).Class("a") },
	"all": func(p *reserve.Policy) reserve.Reserver {
		return reserve.All(p.Limiter(), reserve.Must(pace.NewBursty(1000)))
	},
	"pool": func(p *reserve.Policy) reserve.Reserver {
		return reserve.Must(pool.New([]pool.Member[int]{{By: p.Limiter()}})).Reserver()
	},
	"store": func(p *reserve.Policy) reserve.Reserver {
		return reserve.Must(shared.NewIn(shared.Memory(), "a", p))
	},
	"store's key": func(p *reserve.Policy) reserve.Reserver {
		return reserve.Must(shared.NewKeyedIn(shared.Memory(), p)).For("a")
	},
	"class in front of a store": func(p *reserve.Policy) reserve.Reserver {
		return inFair(reserve.Must(shared.NewIn(shared.Memory(), "a", p))).Class("a")
	},
	"all with a store": func(p *reserve.Policy) reserve.Reserver {
		return reserve.All(reserve.Must(shared.NewIn(shared.Memory(), "a", p)), reserve.Must(pace.NewBursty(1000)))
	},
	"the user's": func(p *reserve.Policy) reserve.Reserver { return own{p.Limiter()} },
}

// own is a Reserver of a user: what it embeds answers, but does not reserve.
type own struct{ *reserve.Limiter }

func (o own) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error) {
	return o.Limiter.ReserveWithin(ctx, n, maxWait)
}

func inFair(by reserve.Reserver) *fair.Queue {
	return reserve.Must(fair.New(by, []fair.Class{{Name: "a"}}))
}

func each(t *testing.T, f func(t *testing.T, by func(p *reserve.Policy) reserve.Reserver)) {
	for name, by := range stands {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { f(t, by) }) })
	}
}

func TestRate(t *testing.T) {
	each(t, func(t *testing.T, by func(p *reserve.Policy) reserve.Reserver) {
		require.Equal(t, 7., limit.Of(by(reserve.Must(pace.Bursty(7)))).Rate())
	})
}

func TestStop(t *testing.T) {
	each(t, func(t *testing.T, by func(p *reserve.Policy) reserve.Reserver) {
		r := by(reserve.Must(pace.Bursty(100)))
		limit.Of(r).Stop(time.Now().Add(5 * time.Second))
		begin := time.Now()
		_, err := reserve.Acquire(t.Context(), r, 1)
		require.NoError(t, err)
		require.Equal(t, 5*time.Second, time.Since(begin))
	})
}

// A limit of another type that embeds one of this module's answers for itself.
func TestEmbedded(t *testing.T) {
	type embedded struct{ *shared.Limiter }
	l := reserve.Must(shared.NewIn(shared.Memory(), "a", reserve.Must(pace.Bursty(7))))
	require.Equal(t, "a", limit.Of(l).Name())
	require.True(t, limit.Of(l).Traits().Distant)
	require.False(t, limit.Of(embedded{l}).Traits().Distant)
}

func TestTraits(t *testing.T) {
	p := reserve.Must(pace.Bursty(1))
	for stand, want := range map[string]limit.Traits{
		"alone":                     {Tunable: true, Stops: true},
		"key":                       {Tunable: true, Stops: true, Blocks: true},
		"fair":                      {Stops: true, Blocks: true},
		"all":                       {Stops: true},
		"store":                     {Blocks: true, Distant: true, Silent: true},
		"store's key":               {Blocks: true, Distant: true, Silent: true},
		"class in front of a store": {Blocks: true, Silent: true},
		"the user's":                {Tunable: true, Stops: true, Blocks: true},
	} {
		require.Equal(t, want, limit.Of(stands[stand](p)).Traits(), stand)
	}
	require.Equal(t, limit.Traits{Silent: true, InFlight: true}, limit.Of(queue.NewPlaces(1)).Traits())
}

func TestVersion(t *testing.T) {
	l := reserve.Must(pace.NewBursty(1))
	of := limit.Of(reserve.All(l, reserve.Must(pace.NewBursty(1))))
	version := of.Version()
	changes := func(does bool, f func()) {
		t.Helper()
		f()
		require.Equal(t, does, of.Version() != version)
		version = of.Version()
	}
	var r reserve.Reservation
	changes(false, func() { r, _ = l.Reserve(t.Context(), 5) })
	changes(false, func() { _ = l.Snapshot() })
	changes(true, func() { r.Settle(3) })
	changes(true, func() { l.PauseUntil(time.Now().Add(time.Hour)) })
	changes(true, l.Resume)
	changes(true, func() { require.NoError(t, l.Retime(2)) })
	changes(true, func() { require.NoError(t, l.SetPolicy(reserve.Must(pace.Bursty(3)))) })
}

func TestOutlook(t *testing.T) {
	p := reserve.Must(window.Policy(10, time.Second))
	for _, stand := range []string{"alone", "key", "all", "store", "store's key", "fair", "pool"} {
		require.Equal(t, 10., limit.Most(limit.Of(stands[stand](p))), stand)
	}
	l := p.Limiter()
	require.True(t, l.TryAcquire(4))
	o, known := limit.Of(reserve.All(l, reserve.Must(pace.NewBursty(1000)))).Outlook()
	require.True(t, known)
	require.Equal(t, engine.Outlook{Rate: 10, Capacity: 10, Window: true}, engine.Outlook{Rate: o.Rate, Capacity: o.Capacity, Window: o.Window})
}

// A named limit is named wherever it stands.
func TestName(t *testing.T) {
	each(t, func(t *testing.T, by func(p *reserve.Policy) reserve.Reserver) {
		r := by(reserve.Must(pace.TokenBucket(1, 1, reserve.WithName("hourly"))))
		_, err := r.ReserveWithin(t.Context(), 1, 0)
		require.NoError(t, err)
		_, err = r.ReserveWithin(t.Context(), 1, 0)
		var late *reserve.WaitError
		require.ErrorAs(t, err, &late)
		require.Equal(t, "hourly", late.Limit)
	})
}

func TestOfDoesNotAllocate(t *testing.T) {
	l := reserve.Must(pace.NewBursty(1))
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = limit.Of(l) }))
	places := queue.NewPlaces(1)
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = limit.Of(places) }))
}
