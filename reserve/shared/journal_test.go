package shared_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/redis"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/warmup"
)

// books are policies that a store can do, and Redis's script can't.
var books = map[string]*reserve.Policy{
	"window":     reserve.Must(window.Policy(10, time.Second)),
	"day":        reserve.Must(calendar.Policy(10, calendar.Daily(time.UTC, 0))),
	"spread":     reserve.Must(calendar.Policy(10, calendar.Every(time.Minute), calendar.Spread(2))),
	"from first": reserve.Must(calendar.Policy(10, calendar.FromFirst(time.Minute))),
}

// Processes whose callers never give up get what one process's get from a limiter of its own, at the same times,
// however many requests the store has folded, and also where some used more than they had reserved.
func TestStoresAgreeWithOneProcess(t *testing.T) {
	names := append(slices.Collect(maps.Keys(books)), "later", "bucket", "warm-up", "warm-up upfront")
	for _, name := range names {
		for seed := range uint64(queues(5)) {
			synctest.Test(t, func(t *testing.T) { agreesWithOne(t, name, seed) })
		}
	}
}

func agreesWithOne(t *testing.T, name string, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 40))
	begin := time.Now()
	one, store := reserve.Must(bubbled(name)).Limiter(), shared.Memory()
	var both []*shared.Limiter
	for range 2 {
		both = append(both, reserve.Must(shared.NewIn(store, "book", reserve.Must(bubbled(name)))))
	}
	type pair struct{ alone, shared reserve.Reservation }
	var held []*pair
	for i := range 800 {
		at := fmt.Sprintf("%s, seed %d, request %d", name, seed, i)
		n, most := 1+random.IntN(4), time.Duration(random.ExpFloat64()*float64(20*time.Second))
		if random.IntN(4) == 0 {
			most = 0
		}
		p := &pair{}
		var refused, err error
		p.alone, refused = one.ReserveWithin(t.Context(), n, most)
		p.shared, err = both[random.IntN(2)].ReserveWithin(t.Context(), n, most)
		require.Equal(t, refused == nil, err == nil, at)
		if err == nil {
			require.WithinDuration(t, p.alone.At(), p.shared.At(), 2*time.Microsecond, at)
			held = append(held, p)
		}
		if random.IntN(3) == 0 {
			time.Sleep(time.Duration(random.ExpFloat64() * float64(3*time.Second)).Truncate(time.Microsecond))
		}
		// Alone, windows and calendars place charges behind requests that wait.
		if charges := books[name] == nil || !one.NextFree().After(time.Now()); charges && random.IntN(8) == 0 {
			held = slices.DeleteFunc(held, func(p *pair) bool {
				if p.alone.Delay() > 0 || p.shared.Delay() > 0 {
					return false
				}
				p.alone.Settle(p.alone.Permits() + 1)
				p.shared.Settle(p.shared.Permits() + 1)
				return true
			})
		}
	}
	require.Greater(t, time.Since(begin), time.Minute)
}

// What is settled at more counts at once, as alone: it does not wait for the next period.
func TestBooksSettleAtMore(t *testing.T) {
	for _, name := range []string{"window", "day"} {
		synctest.Test(t, func(t *testing.T) {
			one := reserve.Must(bubbled(name)).Limiter()
			l := reserve.Must(shared.NewIn(shared.Memory(), "more", reserve.Must(bubbled(name))))
			var alone, kept reserve.Reservation
			for n := range 5 {
				alone, kept = reserve.Must(one.Reserve(t.Context(), 2)), reserve.Must(l.Reserve(t.Context(), 2))
				require.Zero(t, kept.Delay(), n)
			}
			alone.Settle(5)
			kept.Settle(5)
			time.Sleep(100 * time.Millisecond)
			want, got := reserve.Must(one.Reserve(t.Context(), 10)), reserve.Must(l.Reserve(t.Context(), 10))
			require.WithinDuration(t, want.At(), got.At(), time.Microsecond, name)
		})
	}
}

// bubbled returns the policy of that name on the bubble's clock.
func bubbled(name string) (*reserve.Policy, error) {
	switch name {
	case "window":
		return window.Policy(10, time.Second)
	case "day":
		return calendar.Policy(10, calendar.Daily(time.UTC, 0))
	case "spread":
		return calendar.Policy(10, calendar.Every(time.Minute), calendar.Spread(2))
	case "later":
		return pace.Bursty(3, pace.WithCapacity(7), reserve.WithStored(7))
	case "bucket":
		return pace.TokenBucket(3, 2.5)
	case "warm-up":
		return warmup.Policy(3, 4*time.Second)
	case "warm-up upfront":
		return warmup.Policy(3, 4*time.Second, reserve.PayUpfront())
	default:
		return calendar.Policy(10, calendar.FromFirst(time.Minute))
	}
}

// Whatever comes back, whenever: no window and no day has more than it may, none that waits is late, and what comes
// back can be had.
func TestBooksGiveBack(t *testing.T) {
	for _, name := range []string{"window", "day"} {
		for seed := range uint64(queues(20)) {
			synctest.Test(t, func(t *testing.T) {
				random, store := rand.New(rand.NewPCG(seed, 41)), shared.Memory()
				length := map[string]time.Duration{"window": time.Second, "day": 24 * time.Hour}[name]
				l := reserve.Must(shared.NewIn(store, "back", books[name]))
				other := reserve.Must(shared.NewIn(store, "back", books[name]))
				type use struct {
					at time.Time
					n  int
				}
				var uses []use
				var held []*reserve.Reservation
				for range 400 {
					switch random.IntN(3) {
					case 0:
						time.Sleep(time.Duration(random.ExpFloat64() * float64(length) / 8))
					case 1:
						r, err := l.ReserveWithin(t.Context(), 1+random.IntN(4), 3*length)
						l, other = other, l
						if err == nil {
							held = append(held, &r)
						}
					case 2:
						if len(held) == 0 {
							continue
						}
						i := random.IntN(len(held))
						kept := random.IntN(2)
						if r := held[i]; kept > 0 {
							r.Settle(kept)
							uses = append(uses, use{r.At(), kept})
						} else {
							r.Cancel()
						}
						held = slices.Delete(held, i, i+1)
					}
				}
				for _, r := range held {
					uses = append(uses, use{r.At(), r.Permits()})
				}
				for _, u := range uses {
					sum := 0
					for _, v := range uses {
						same := v.at.UTC().Truncate(length).Equal(u.at.UTC().Truncate(length))
						if name == "window" {
							same = !v.at.Before(u.at) && v.at.Before(u.at.Add(length-2*time.Microsecond))
						}
						if same {
							sum += v.n
						}
					}
					require.LessOrEqual(t, sum, 10, "%s, seed %d", name, seed)
				}
			})
		}
		synctest.Test(t, func(t *testing.T) { // and what comes back can be had
			l := reserve.Must(shared.NewIn(shared.Memory(), "back", books[name]))
			first, err := l.ReserveWithin(t.Context(), 8, 0)
			require.NoError(t, err)
			waits, err := l.Reserve(t.Context(), 8)
			require.NoError(t, err)
			require.Positive(t, waits.Delay())
			ok, err := l.TryAcquire(t.Context(), 2)
			require.NoError(t, err)
			require.False(t, ok, "the other was first")
			waits.Cancel()
			time.Sleep(time.Second / 2)
			ok, err = l.TryAcquire(t.Context(), 2)
			require.NoError(t, err)
			require.True(t, ok)
			first.Settle(3)
			shot, err := l.Snapshot(t.Context())
			require.NoError(t, err)
			require.Equal(t, 5.0, shot.Level)
			require.Equal(t, 10.0, shot.Capacity)
			require.Zero(t, shot.Wait)
			d, err := l.Decide(t.Context(), 4)
			require.NoError(t, err)
			require.True(t, d.Granted)
			require.Equal(t, 1.0, d.Left)
			require.Positive(t, d.Wait, "the next four")
		})
	}
}

// A pause, its end, and a reset, for both processes.
func TestBooksPause(t *testing.T) {
	for name, policy := range books {
		synctest.Test(t, func(t *testing.T) {
			store := shared.Memory()
			one := reserve.Must(shared.NewIn(store, "pause", policy))
			two := reserve.Must(shared.NewIn(store, "pause", policy))
			require.NoError(t, one.PauseUntil(t.Context(), time.Now().Add(time.Hour)), name)
			next, err := two.NextFree(t.Context())
			require.NoError(t, err)
			require.WithinDuration(t, time.Now().Add(time.Hour), next, time.Millisecond, name)
			require.NoError(t, two.Resume(t.Context()))
			time.Sleep(time.Second) // so long the other believes what it knows
			ok, err := one.TryAcquire(t.Context(), 1)
			require.NoError(t, err)
			require.True(t, ok, name)
			r, err := two.Reserve(t.Context(), 10)
			require.NoError(t, err)
			require.Positive(t, r.Delay(), name)
			require.NoError(t, one.Reset(t.Context()))
			r.Cancel() // of what was before, nothing comes back
			shot, err := two.Snapshot(t.Context())
			require.NoError(t, err)
			require.Equal(t, 10.0, shot.Level, name)
		})
	}
}

// A store may forget a value as soon as it was kept for as long as it was to be: not before a pause is over.
func TestBooksKeepAPause(t *testing.T) {
	for name, policy := range books {
		store := &forgetful{now: time.Unix(1_790_000_000, 0)}
		one := reserve.Must(shared.NewIn(store, "pause", policy))
		two := reserve.Must(shared.NewIn(store, "pause", policy))
		_, err := one.TryAcquire(t.Context(), 1)
		require.NoError(t, err)
		require.NoError(t, one.PauseUntil(t.Context(), time.Now().Add(400*24*time.Hour)))
		store.now = store.now.Add(399 * 24 * time.Hour)
		ok, err := two.TryAcquire(t.Context(), 1)
		require.NoError(t, err)
		require.False(t, ok, name)
	}
}

// A forgetful store has the test's clock, one value, and keeps that no longer than it has to.
type forgetful struct {
	now, until time.Time
	value      []byte
}

func (s *forgetful) Update(_ context.Context, _ string, f decision) error {
	if !s.now.Before(s.until) {
		s.value = nil
	}
	value, keep, err := f(s.now, s.value)
	if err == nil {
		s.value, s.until = value, s.now.Add(keep)
	}
	return err
}

// The store's clock is set back an hour: nobody gains, nobody waits longer, and what was promised goes first.
func TestBooksWhoseClockIsSetBack(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	l := reserve.Must(shared.NewIn(&clocked{shared.Memory(), &now}, "back", books["window"], shared.WithTimeout(time.Minute)))
	reserves := func(n int) time.Duration {
		r, err := l.Decide(t.Context(), n)
		require.NoError(t, err)
		if r.Granted {
			return 0
		}
		return r.Wait
	}
	require.Zero(t, reserves(10))
	_, err := l.Reserve(t.Context(), 4) // in a second
	require.NoError(t, err)
	now = now.Add(-time.Hour + 500*time.Millisecond)
	_, err = l.Reserve(t.Context(), 4) // what passed while the clock was set is not known
	require.NoError(t, err)
	snap := func() time.Duration {
		shot, err := l.Snapshot(t.Context())
		require.NoError(t, err)
		return shot.Wait
	}
	require.Equal(t, time.Second, snap(), "behind both")
	now = now.Add(600 * time.Millisecond)
	require.Equal(t, 400*time.Millisecond, snap())
	now = now.Add(400 * time.Millisecond)
	require.Zero(t, snap())
	require.Equal(t, time.Second, reserves(3), "2 are left")
}

// Two machines whose clocks differ by less than half a second, on a store without a clock, keep to the limit together.
func TestClocksThatDiffer(t *testing.T) {
	for _, skew := range []time.Duration{4 * time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, 400 * time.Millisecond} {
		for _, name := range []string{"bucket", "window"} {
			one := time.Unix(1_790_000_000, 0)
			other := one.Add(skew)
			store := shared.Memory()
			var all []*shared.Limiter
			for _, now := range []*time.Time{&one, &other} {
				l, err := shared.NewIn(&clocked{store, now}, "skew", reserve.Must(bubbled(name)), shared.WithTimeout(time.Minute))
				require.NoError(t, err)
				all = append(all, l)
			}
			granted := 0
			for i := range 1000 { // for 10 s
				one, other = one.Add(10*time.Millisecond), other.Add(10*time.Millisecond)
				d, err := all[i%2].Snapshot(t.Context())
				require.NoError(t, err)
				if d.Wait > 0 {
					continue
				}
				if _, err := all[i%2].ReserveWithin(t.Context(), 1, 0); err == nil {
					granted++
				}
			}
			most := 3*10 + 3 // 3/s, and what is stored
			if name == "window" {
				most = 10*10 + 10
			}
			require.LessOrEqual(t, granted, most, "%s, %v", name, skew)
			require.Greater(t, granted, most*8/10, "%s, %v", name, skew)
		}
	}
}

// A clocked store has the test's clock.
type clocked struct {
	shared.Store
	now *time.Time
}

func (c *clocked) Update(ctx context.Context, key string, f decision) error {
	return c.Store.Update(ctx, key, func(_ time.Time, old []byte) ([]byte, time.Duration, error) { return f(*c.now, old) })
}

func TestBooksRefuse(t *testing.T) {
	store := shared.Memory()
	l := reserve.Must(shared.NewIn(store, "refuse", books["window"]))
	_, err := l.Acquire(t.Context(), 11)
	var size *reserve.SizeError
	require.ErrorAs(t, err, &size)
	require.EqualError(t, l.SetRate(t.Context(), 5), "shared: SetRate does not apply to a window")
	_, err = shared.New(&redis.Client{}, "refuse", books["day"])
	var curve *shared.CurveError
	require.ErrorAs(t, err, &curve)

	require.NoError(t, l.PauseUntil(t.Context(), time.Now())) // nothing
	ok, err := l.TryAcquire(t.Context(), 1)
	require.NoError(t, err)
	require.True(t, ok)
	day := reserve.Must(shared.NewIn(store, "refuse", books["day"]))
	_, err = day.TryAcquire(t.Context(), 1)
	var config *shared.ConfigError
	require.ErrorAs(t, err, &config, "the state is a window's")
	bucket := reserve.Must(shared.NewIn(store, "refuse", reserve.Must(policies["bursty"](10))))
	_, err = bucket.TryAcquire(t.Context(), 1)
	require.ErrorAs(t, err, &config)
}

// A state that is cut off or damaged anywhere is refused, and never panics.
func TestBooksWhoseStateIsDamaged(t *testing.T) {
	for name, policy := range books {
		store := &spoiled{Store: shared.Memory(), spoil: func(b []byte) []byte { return b }}
		l := reserve.Must(shared.NewIn(store, "damaged", policy))
		for range 5 {
			_, err := l.Reserve(t.Context(), 7)
			require.NoError(t, err)
		}
		size := 0
		store.spoil = func(b []byte) []byte { size = len(b); return b }
		_, err := l.Stored(t.Context())
		require.NoError(t, err)
		for i := range size {
			for _, spoil := range []func(b []byte) []byte{
				func(b []byte) []byte { return b[:i] },
				func(b []byte) []byte { b[i] ^= byte(1 + i%255); return b },
			} {
				store.spoil = spoil
				_, err := l.Stored(t.Context())
				var refused *shared.StateError
				require.ErrorAs(t, err, &refused, "%s, byte %d", name, i)
			}
		}
	}
}

// A spoiled store does something to each value that it returns.
type spoiled struct {
	shared.Store
	spoil func(b []byte) []byte
}

func (s *spoiled) Update(ctx context.Context, key string, f decision) error {
	return s.Store.Update(ctx, key, func(now time.Time, old []byte) ([]byte, time.Duration, error) {
		if old != nil {
			old = s.spoil(slices.Clone(old))
		}
		return f(now, old)
	})
}

// While the store fails, each process alone keeps to its share of a day.
func TestBooksWithoutAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &failing{Store: shared.Memory()}
		l := reserve.Must(shared.NewIn(s, "fails", books["day"], shared.Local(0.5)))
		_, err := l.TryAcquire(t.Context(), 1)
		require.NoError(t, err)
		s.fails = true
		granted := 0
		for range 20 {
			ok, err := l.TryAcquire(t.Context(), 1)
			require.NoError(t, err)
			if ok {
				granted++
			}
		}
		require.Equal(t, 5, granted)
	})
}

type failing struct {
	shared.Store
	fails bool
}

func (f *failing) Update(ctx context.Context, key string, do decision) error {
	if f.fails {
		return shared.ErrNotWritten
	}
	return f.Store.Update(ctx, key, do)
}

// A decision is what a store's Update gets.
type decision = func(now time.Time, old []byte) (value []byte, keep time.Duration, err error)
