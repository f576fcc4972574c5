package reserve_test

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/variant"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/internal/smooth"
	"github.com/nextfree/pace/reserve"
)

// A slowContext is one whose caller is not scheduled for a while after it was woken: the second and later
// calls of Done block until it may go on.
type slowContext struct {
	context.Context
	goOn  chan struct{}
	calls chan struct{}
}

func newSlowContext(ctx context.Context, quick int) *slowContext {
	c := &slowContext{Context: ctx, goOn: make(chan struct{}), calls: make(chan struct{}, quick)}
	for range quick {
		c.calls <- struct{}{}
	}
	return c
}

func (c *slowContext) Done() <-chan struct{} {
	select {
	case <-c.calls:
	default:
		<-c.goOn
	}
	return c.Context.Done()
}

// Two sleepers whose times have come by a settlement. Before the first one is scheduled, others take so
// many permits, and one begins a new queue, that the ledger has forgotten the two. The first leaves and tells
// the second: whose time is not known then, so it is not woken.
func TestSleeperThatTheLedgerForgotIsWoken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := reserve.Must(pace.NewBursty(10, pace.WithCapacity(1000), reserve.WithStored(1000)))
		begin := time.Now()
		big, err := l.Reserve(ctx, 2000) // 100 s of debt
		require.NoError(t, err)
		var all sync.WaitGroup
		var waited [3]time.Duration
		slow := newSlowContext(t.Context(), 2) // at the begin, and while it sleeps
		for i := range waited {
			all.Go(func() {
				if i == 0 {
					waited[i], _ = l.Acquire(slow, 1)
				} else {
					waited[i], _ = l.Acquire(context.Background(), 1)
				}
			})
			synctest.Wait()
		}
		time.Sleep(time.Second)
		big.Cancel() // all three may go now
		for range 70 {
			require.True(t, l.TryAcquire(1))
		}
		_, err = l.Reserve(ctx, 2000)
		require.NoError(t, err)
		_, err = l.Reserve(ctx, 1) // the first of a new queue
		require.NoError(t, err)
		close(slow.goOn)
		all.Wait()
		t.Log(waited, time.Since(begin))
		for i := range waited {
			require.LessOrEqual(t, waited[i], time.Second, i)
		}
	})
}

var inf = math.Inf(1)

// A pause makes the first sleeper hopeless. With it gone the second one fits, and so on: only the
// first gives up, whichever of them is scheduled first.
func TestSleepersGiveUpInOrder(t *testing.T) {
	for round := range 200 {
		bubble(t, func(t *testing.T) {
			l := reserve.Must(pace.NewBursty(1, pace.WithBurst(0)))
			require.True(t, l.TryAcquire(1))
			begin := time.Now()
			var all sync.WaitGroup
			var errs [8]error
			for i := range errs { // at 1, 11, 12, 13, ...
				n, deadline := 1, time.Duration(12+i)*time.Second
				if i == 0 {
					n, deadline = 10, 2*time.Second
				}
				all.Go(func() {
					ctx, cancel := context.WithDeadline(context.Background(), begin.Add(deadline))
					defer cancel()
					_, errs[i] = l.Acquire(ctx, n)
				})
				synctest.Wait()
			}
			l.PauseUntil(begin.Add(5 * time.Second)) // now at 6, 16, 17: without the first at 6, 7, 8
			all.Wait()
			require.ErrorAs(t, errs[0], new(*reserve.WaitError))
			for i, err := range errs[1:] {
				require.NoError(t, err, "round %d, sleeper %d", round, i+1)
			}
		})
	}
}

// Sums of time saturate: a charge that becomes the head while next free is near the end of time.
func TestChargeAtTheEndOfTime(t *testing.T) {
	b := limitertest.Bursty(t, 1e-9, pace.WithBurst(0)) // 31 years a permit
	first := b.Waits(1, 0)
	waits, err := b.Reserve(ctx, 1)
	require.NoError(t, err)
	first.Settle(5) // behind the one that waits
	b.PauseUntil(b.Now().Add(time.Duration(200 * 365 * 24 * time.Hour)))
	waits.Cancel()
	require.Positive(t, b.FreeIn())
	require.False(t, b.TryAcquire(1))
}

// A pause at the end of which time saturates, ended at once: nothing is earlier than before.
func TestResumeAtTheEndOfTime(t *testing.T) {
	b := limitertest.Bursty(t, 0.01, pace.WithBurst(0))
	b.Waits(365*24*3600, 0) // 100 years
	waits, err := b.Reserve(ctx, 1)
	require.NoError(t, err)
	before := waits.Delay()
	b.PauseUntil(b.Now().Add(time.Duration(reserve.Forever)))
	b.Resume()
	require.Equal(t, before, waits.Delay())
}

// No limit in between, during a pause.
func TestRetimeWithoutLimitInAPause(t *testing.T) {
	b := limitertest.Bursty(t, 10, pace.WithBurst(0))
	b.Waits(1, 0)
	r1, r2 := b.Waits(1, 100*ms), b.Waits(1, 200*ms)
	b.PauseUntil(b.Now().Add(s))
	require.NoError(t, b.Retime(inf))
	require.Equal(t, s, r1.Delay())
	require.Equal(t, s, r2.Delay())
	require.NoError(t, b.Retime(10))
	require.Equal(t, s, r1.Delay())
	require.Equal(t, s, r2.Delay())
	require.Equal(t, s, b.FreeIn())
	b.Resume()
	require.Zero(t, r1.Delay())
	require.Zero(t, r2.Delay())
}

// A policy of a variant of one's own whose ledger can't change.
func TestSetPolicyOfALedgerThatCannotChange(t *testing.T) {
	make := func() *reserve.Policy {
		return reserve.Must(variant.Variant{
			Package: "own", Limiter: "an own limiter",
			Ledger: func(now int64, _ func(int64) time.Time) engine.Ledger {
				return smooth.New(&smooth.Curve{Rate: 1, Interval: 1e9}, now, 0, false)
			},
		}.Policy(1))
	}
	l := make().Limiter()
	require.ErrorAs(t, l.SetPolicy(make()), new(*reserve.ValueError), "and no panic")
}

// A pause moves next free so far that nothing is left of time behind the waiting requests. The next amount is negative,
// and after a Retime no request is ever served again.
func TestAmountsAreNeverNegative(t *testing.T) {
	b := limitertest.Bursty(t, 1e-18, pace.WithBurst(0), reserve.PayUpfront())
	_, err := b.Reserve(ctx, 3)
	require.NoError(t, err)
	b.PauseUntil(b.Now().Add(50 * 365 * 24 * time.Hour))
	_, err = b.Reserve(ctx, 1)
	require.NoError(t, err)
	require.NoError(t, b.SetRate(3e9))
	require.NoError(t, b.Retime(1e18))
	b.Resume()
	b.Advance(1000 * time.Hour)
	require.True(t, b.TryAcquire(1))
}

// A rate without a limit, while a request waits that is paid upfront. When the rate has a limit again the store is
// full, and the waiting request may go, says At. But the ledger does not look again before the old time.
func TestARateWithALimitIsSeenAtOnce(t *testing.T) {
	b := limitertest.TokenBucket(t, 10, 5)
	b.Waits(5, 0)
	waits := b.Waits(5, 500*ms)
	require.NoError(t, b.SetRate(math.Inf(1)))
	require.NoError(t, b.SetRate(5))
	require.Zero(t, waits.Delay())
	require.Zero(t, b.FreeIn())
	require.True(t, b.TryAcquire(1))
}

// A sale that was refused for its size says that a permit is free now. A caller that has read the clock just
// before must not be refused by that.
func TestARefusalOfManyRefusesNoOne(t *testing.T) {
	clock := &jumpyClock{FakeClock: clockwork.NewFakeClock()}
	l := reserve.Must(pace.NewTokenBucket(10, 5, reserve.WithClock(clock), reserve.WithStored(1)))
	clock.Advance(ms)
	require.False(t, l.TryAcquire(3))
	clock.late.Store(int64(time.Microsecond)) // a reading from before
	require.True(t, l.TryAcquire(1))
}

// Whatever is done in whatever order at the ends of what can be counted, next free is never in the past, and
// what is stored is a number.
func TestExtremesInAnyOrder(t *testing.T) {
	rates := []float64{math.SmallestNonzeroFloat64, 1e-300, 1e-18, 1e-9, 0.3, 7e8, 3e9, 1e18, 1e300, math.MaxFloat64, inf}
	for seed := range uint64(10_000) {
		random := rand.New(rand.NewPCG(seed, 3))
		options := []reserve.Option{[]reserve.Option{
			pace.WithBurst(0), pace.WithBurst(s), pace.WithCapacity(10), pace.WithCapacity(1e300),
		}[random.IntN(4)]}
		if random.IntN(2) == 0 {
			options = append(options, reserve.PayUpfront())
		}
		b := limitertest.Bursty(t, rates[random.IntN(len(rates))], options...)
		var held []*reserve.Reservation
		for range 25 {
			rate := rates[random.IntN(len(rates))]
			switch random.IntN(8) {
			case 0, 1:
				r, err := b.Reserve(ctx, []int{1, 3, math.MaxInt, math.MaxInt - 1, math.MaxInt32}[random.IntN(5)])
				require.NoError(t, err)
				held = append(held, &r)
			case 2:
				if len(held) > 0 {
					held[random.IntN(len(held))].Settle([]int{0, 1, 2, math.MaxInt - 2, math.MaxInt}[random.IntN(5)])
				}
			case 3:
				require.NoError(t, b.Retime(rate))
			case 4:
				require.NoError(t, b.SetRate(rate))
			case 5:
				b.Advance(time.Duration(random.Int64N(int64(1000 * time.Hour))))
			case 6:
				b.PauseUntil(b.Now().Add(time.Duration(random.Int64())))
			case 7:
				b.Resume()
			}
			require.GreaterOrEqual(t, b.FreeIn(), time.Duration(0), "seed %d", seed)
			require.GreaterOrEqual(t, b.Stored(), 0.0, "seed %d", seed) // false for NaN
		}
	}
}
