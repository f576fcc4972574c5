package bykey_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/watchdog"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/warmup"
)

// A plans is limiters whose policies change, on a fake clock.
type plans struct {
	*clockwork.FakeClock
	*keyed.Limiters[string]
	policy *reserve.Policy
	err    error
	asked  int
}

func newPlans(policy func(reserve.Option) (*reserve.Policy, error), opts ...keyed.Option) *plans {
	p := &plans{FakeClock: clockwork.NewFakeClock()}
	p.policy = reserve.Must(policy(p.clock()))
	p.Limiters = keyed.New(func(string) (*reserve.Policy, error) { p.asked++; return p.policy, p.err }, opts...)
	return p
}

func (p *plans) clock() reserve.Option { return reserve.WithClock(p.FakeClock) }

func (p *plans) bursty(rate float64, opts ...reserve.Option) *reserve.Policy {
	return reserve.Must(pace.Bursty(rate, append(opts, p.clock())...))
}

func atRate(rate float64, opts ...reserve.Option) func(reserve.Option) (*reserve.Policy, error) {
	return func(clock reserve.Option) (*reserve.Policy, error) { return pace.Bursty(rate, append(opts, clock)...) }
}

// granted asks for a permit of the key each 10 ms, as a client that never lets go, and counts.
func (p *plans) granted(key string, d time.Duration) (n int) {
	for range d / (10 * time.Millisecond) {
		p.Advance(10 * time.Millisecond)
		if p.TryAcquire(key, 1) {
			n++
		}
	}
	return n
}

// A plan that changes reaches a client that keeps asking: at once by Refresh, and within the time to
// live without.
func TestPlanChanges(t *testing.T) {
	for _, test := range []struct {
		name    string
		refresh bool
		opts    []keyed.Option
	}{{"Refresh", true, nil}, {"WithTTL", false, []keyed.Option{keyed.WithTTL(time.Minute)}}} {
		t.Run(test.name, func(t *testing.T) {
			p := newPlans(atRate(1), test.opts...)
			change := func(rate float64) {
				p.policy = p.bursty(rate)
				if test.refresh {
					require.NoError(t, p.Refresh("a"))
				} else {
					p.granted("a", 64*s)
				}
			}
			require.InDelta(t, 60, p.granted("a", time.Minute), 2)
			change(100)
			require.InDelta(t, 6000, p.granted("a", time.Minute), 100, "it still waits for its last second")
			change(1)
			require.InDelta(t, 60, p.granted("a", time.Minute), 2)
		})
	}
}

// What is owed stays owed, and what is stored stays stored: permits, if the store is a number of them.
func TestRefreshKeepsPermits(t *testing.T) {
	p := newPlans(atRate(1, pace.WithCapacity(10), reserve.WithStored(10)))
	require.True(t, p.TryAcquire("a", 5))
	require.True(t, p.TryAcquire("b", 15))
	p.policy = p.bursty(100, pace.WithCapacity(1000))
	require.NoError(t, p.Refresh("a"))
	require.NoError(t, p.Refresh("b"))
	require.Equal(t, 5.0, p.For("a").(keyed.Limiter).Stored())
	require.Equal(t, p.Now().Add(s/20), p.For("b").(keyed.Limiter).NextFree())

	require.NoError(t, p.Refresh("never seen"))
	require.Equal(t, 2, p.Len())
	require.Equal(t, 4, p.asked)
	p.err = errors.New("no database")
	require.Equal(t, p.err, p.Refresh("a"))
	require.Equal(t, 100.0, p.For("a").(keyed.Limiter).Rate(), "it keeps its policy")
}

// A policy of another kind takes over when the last promised time has come, with the same share of
// its store.
func TestRefreshToAnotherKind(t *testing.T) {
	kinds := map[string]func(reserve.Option) (*reserve.Policy, error){
		"bursty":    atRate(1, pace.WithCapacity(10), reserve.WithStored(10)),
		"unlimited": func(c reserve.Option) (*reserve.Policy, error) { return pace.Bursty(inf, c) },
		"window":    func(c reserve.Option) (*reserve.Policy, error) { return window.Policy(10, 10*s, c) },
		"upfront":   func(c reserve.Option) (*reserve.Policy, error) { return pace.TokenBucket(1, 10, c) },
		"warm-up":   func(c reserve.Option) (*reserve.Policy, error) { return warmup.Policy(1, s, c) },
	}
	for from := range kinds {
		for to, policy := range kinds {
			t.Run(from+" to "+to, func(t *testing.T) {
				p := newPlans(kinds[from])
				require.True(t, p.TryAcquire("half", 5))
				for p.TryAcquire("empty", 1) && from != "unlimited" { //nolint:revive // until it is refused
				}
				waits, err := p.ReserveWithin(ctx, "empty", 2, reserve.Forever)
				require.NoError(t, err)
				due := waits.At()
				p.policy = reserve.Must(policy(p.clock()))
				require.NoError(t, p.Refresh("half"))
				require.NoError(t, p.Refresh("empty"))
				if from == "bursty" && to == "unlimited" { // the same kind: permits that are owed cost nothing any more
					due = p.Now()
				}
				require.Equal(t, due, waits.At(), "what was promised stays")

				empty := p.For("empty").(keyed.Limiter)
				if from != "unlimited" {
					require.False(t, empty.NextFree().Before(due), "nothing goes before it")
					require.Equal(t, due == p.Now(), p.TryAcquire("empty", 1))
				}
				half := p.For("half").(keyed.Limiter)
				if stores := from == "bursty" || from == "window" || from == "upfront"; stores && to != "warm-up" && to != "unlimited" {
					require.Equal(t, 5.0, half.Stored())
				}
				if to == "unlimited" && from != "warm-up" {
					require.True(t, p.TryAcquire("half", 1e9))
				}
				// What is settled at more later is the key's, whichever limiter has promised it.
				before := empty.NextFree()
				waits.Settle(12)
				if to != "unlimited" && to != "window" && from != "unlimited" { // a window counts it as used now
					require.True(t, empty.NextFree().After(before), "%v %v", before, empty.NextFree())
				}
				p.Advance(time.Hour)
				inside(p.Limiters).Sweep()
				require.Zero(t, p.Len())
			})
		}
	}
}

// Policies that were made at other times have other clocks' epochs: a key is dropped when it is like
// new and no earlier, whichever of them it has had.
func TestRefreshToPoliciesOfOtherAges(t *testing.T) {
	p := newPlans(atRate(1, pace.WithCapacity(10)))
	require.True(t, p.TryAcquire("a", 1)) // so that all begin now
	old := p.policy
	p.Advance(time.Hour)
	p.policy = p.bursty(1, pace.WithCapacity(10))
	for _, next := range []*reserve.Policy{old, p.bursty(1, pace.WithCapacity(10))} {
		require.True(t, p.TryAcquire("a", 20))
		p.policy = next
		require.NoError(t, p.Refresh("a"))
		require.Equal(t, p.Now().Add(10*s), p.For("a").(keyed.Limiter).NextFree())
		p.Advance(20*s - 1)
		inside(p.Limiters).Sweep()
		require.Equal(t, 1, p.Len())
		p.Advance(1)
		inside(p.Limiters).Sweep()
		require.Zero(t, p.Len())
		require.False(t, p.For("a").(keyed.Limiter).NextFree().After(p.Now()))
	}
}

// With a time to live the function is asked once in it, and what it says then is kept for that long.
func TestTTL(t *testing.T) {
	p := newPlans(atRate(1, pace.WithCapacity(10), reserve.WithStored(10)), keyed.WithTTL(32*s))
	for range 31 {
		require.True(t, p.TryAcquire("a", 1))
		p.Advance(s)
		inside(p.Limiters).Sweep()
	}
	require.Equal(t, 1, p.asked, "although it is like new")
	p.err = errors.New("no database")
	for range 4 {
		p.Advance(s)
		require.True(t, p.TryAcquire("a", 1), "it keeps its policy")
	}
	require.Equal(t, 2, p.asked)
	p.Advance(s)
	require.True(t, p.TryAcquire("a", 1))
	require.Equal(t, 3, p.asked, "an eighth later")
	p.err = nil
	p.Advance(4 * s)
	require.True(t, p.TryAcquire("a", 1))
	require.Equal(t, 4, p.asked)
	p.Advance(31 * s)
	inside(p.Limiters).Sweep()
	require.Equal(t, 1, p.Len())
	p.Advance(s)
	inside(p.Limiters).Sweep()
	require.Zero(t, p.Len())
}

// An old policy stays old for as long as it is swept, and a key that owes is not dropped.
func TestTTLOfAKeyThatNobodyAsks(t *testing.T) {
	p := newPlans(atRate(1, pace.WithCapacity(10)), keyed.WithTTL(s))
	require.True(t, p.TryAcquire("a", 1_000_000))
	p.policy = p.bursty(7)
	for range 2048 { // and half a second more: the ticks begin anew
		p.Advance(s)
		inside(p.Limiters).Sweep()
	}
	p.Advance(s / 2)
	require.False(t, p.TryAcquire("a", 1))
	require.Equal(t, 7.0, p.For("a").(keyed.Limiter).Rate())
}

// A key that is kept for its policy alone leaves its room to a new one.
func TestTTLKeepsNobodyOut(t *testing.T) {
	p := newPlans(atRate(1, reserve.WithStored(1)), keyed.WithTTL(time.Hour), keyed.WithMaxKeys(2))
	require.True(t, p.TryAcquire("a", 1))
	require.True(t, p.TryAcquire("b", 9))
	p.Advance(s)
	require.True(t, p.TryAcquire("c", 1))
	require.ElementsMatch(t, []string{"b", "c"}, slices.Collect(p.Keys()))
}

// While one caller asks for a policy again, the others go on with the one that they have.
func TestTTLWithASlowFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		policy := reserve.Must(pace.Bursty(100))
		keys := keyed.New(func(string) (*reserve.Policy, error) {
			if calls++; calls > 1 {
				time.Sleep(time.Minute)
			}
			return policy, nil
		}, keyed.WithTTL(s))
		require.True(t, keys.TryAcquire("a", 1))
		time.Sleep(s + s/10)
		var one sync.WaitGroup
		begin := time.Now()
		one.Go(func() {
			require.True(t, keys.TryAcquire("a", 1))
			require.Equal(t, time.Minute, time.Since(begin))
		})
		synctest.Wait()
		for range 50 {
			require.True(t, keys.TryAcquire("a", 1))
		}
		require.Equal(t, begin, time.Now())
		require.Equal(t, 2, calls)
		one.Wait()
	})
}

// A key that the function does not know any more is revoked, within the time to live or at once by Refresh; an outage
// of the function revokes no key.
func TestUnknownKeys(t *testing.T) {
	unknown := fmt.Errorf("no such tenant: %w", keyed.ErrUnknown)
	for _, refresh := range []bool{false, true} {
		p := newPlans(atRate(1), keyed.WithTTL(time.Minute))
		p.Advance(time.Hour)
		waits, err := p.ReserveWithin(ctx, "a", 100, reserve.Forever)
		require.NoError(t, err)
		waits, err = p.ReserveWithin(ctx, "a", 1, reserve.Forever)
		require.NoError(t, err)
		due := waits.At()
		p.err = errors.New("no database")
		p.Advance(61 * s)
		require.ErrorIs(t, p.Refresh("a"), p.err)
		_, err = p.ReserveWithin(ctx, "a", 1, reserve.Forever)
		require.NoError(t, err, "it keeps its policy")
		p.err = unknown
		if refresh {
			require.Equal(t, unknown, p.Refresh("a"))
			require.Zero(t, p.Len())
		}
		p.Advance(10 * s)
		_, err = p.ReserveWithin(ctx, "a", 1, reserve.Forever)
		require.Equal(t, unknown, err)
		require.Zero(t, p.Len())
		require.False(t, p.TryAcquire("a", 1))
		require.Equal(t, due, waits.At(), "what was promised stays")
		p.err = nil
		require.True(t, p.TryAcquire("a", 1), "it is known again, and new")
	}
}

func TestForget(t *testing.T) {
	p := newPlans(atRate(1))
	for _, hold := range []bool{false, true} {
		p.Forget("a") // nothing
		require.True(t, p.TryAcquire("a", 100))
		require.True(t, p.TryAcquire("b", 1))
		require.False(t, p.TryAcquire("a", 1))
		waits, err := p.ReserveWithin(ctx, "a", 1, reserve.Forever)
		require.NoError(t, err)
		due := waits.At()
		p.Forget("a")
		require.Equal(t, []string{"b"}, slices.Collect(p.Keys()))
		require.Equal(t, 1, p.Len())
		require.True(t, p.TryAcquire("a", 1))
		require.Equal(t, due, waits.At())
		waits.Cancel()
		if hold {
			p.Forget("a")
			h, err := p.ReserveWithin(ctx, "a", 1, 0)
			require.NoError(t, err)
			p.Forget("a")
			require.Equal(t, 1, p.Len())
			h.Cancel()
		}
		p.Forget("b")
		p.Forget("a")
		require.Zero(t, p.Len())
	}
}

// A reservation gives its permits back after a change of policy, too.
func TestRefreshOfAReservation(t *testing.T) {
	p := newPlans(atRate(1, pace.WithCapacity(10), reserve.WithStored(10)))
	r, err := p.ReserveWithin(ctx, "a", 4, 0)
	require.NoError(t, err)
	p.policy = p.bursty(2, pace.WithCapacity(20))
	require.NoError(t, p.Refresh("a"))
	require.Equal(t, 6.0, p.For("a").(keyed.Limiter).Stored())
	r.Cancel()
	require.Equal(t, 10.0, p.For("a").(keyed.Limiter).Stored())
}

func TestKeys(t *testing.T) {
	p := newPlans(atRate(1))
	var want []string
	for i := range 1000 {
		key := strconv.Itoa(i)
		want = append(want, key)
		require.True(t, p.TryAcquire(key, 1))
	}
	require.ElementsMatch(t, want, slices.Collect(p.Keys()))
	for key := range p.Keys() {
		p.Forget(key)
	}
	require.Zero(t, p.Len())
	require.True(t, p.TryAcquire("a", 1))
	for key := range p.Keys() {
		require.Equal(t, "a", key)
		break
	}
}

// An answer that the function began to find before a Refresh or a Forget is asked for again.
func TestRefreshWhileThePolicyIsAskedFor(t *testing.T) {
	for name, refresh := range map[string]func(*keyed.Limiters[string]){
		"Refresh": func(k *keyed.Limiters[string]) { require.NoError(t, k.Refresh("a")) },
		"Forget":  func(k *keyed.Limiters[string]) { k.Forget("a") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rate := 1.0
				keys := keyed.New(func(string) (*reserve.Policy, error) {
					found := rate
					time.Sleep(time.Minute)
					return pace.Bursty(found)
				})
				go keys.TryAcquire("a", 1)
				synctest.Wait()
				rate = 2
				refresh(keys)
				require.Equal(t, 2.0, keys.For("a").(keyed.Limiter).Rate())
			})
		})
	}
}

// After Refresh or Forget has returned no caller gets a policy of before.
func TestRefreshRace(t *testing.T) {
	watchdog.Start(t)
	var version atomic.Int64
	version.Store(1)
	keys := keyed.New(func(string) (*reserve.Policy, error) { return pace.Bursty(float64(version.Load())) },
		keyed.WithTTL(time.Millisecond))
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					keys.TryAcquire("a", 1)
					_ = keys.For("a").(keyed.Limiter).Stored()
				}
			}
		})
	}
	for i := range 2000 {
		at := version.Add(1)
		if i%2 == 0 {
			require.NoError(t, keys.Refresh("a"))
		} else {
			keys.Forget("a")
		}
		keys.TryAcquire("a", 1)
		require.Equal(t, float64(at), keys.For("a").(keyed.Limiter).Rate(), fmt.Sprint(i))
	}
	close(stop)
	all.Wait()
}

// A policy function's error may ask the limiters when it is compared with ErrUnknown: no lock is held.
type curious struct{ ask func() }

func (curious) Error() string     { return "curious" }
func (c curious) Is(_ error) bool { c.ask(); return false }

func TestAnErrorThatAsksTheLimiters(t *testing.T) {
	watchdog.Start(t)
	var l *keyed.Limiters[string]
	others := func() { // of all shards
		for i := range 1000 {
			l.Forget(strconv.Itoa(i))
		}
	}
	l = keyed.New(func(string) (*reserve.Policy, error) { return nil, curious{others} })
	_, err := l.Acquire(t.Context(), "a", 1)
	require.ErrorContains(t, err, "curious")
}
