package keyed_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/limitertest"
	"github.com/nextfree/pace/internal/watchdog"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
	"github.com/nextfree/pace/reserve/internal/keyhooks"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/warmup"
)

// A hold is a reservation of a plain limiter: what is kept stays taken, what is cancelled is as if
// never asked, in whichever order, and whatever else the key is asked meanwhile.
func TestAHoldIsLikeAReservation(t *testing.T) {
	const interval = 1 << 26 // so that all sums of permits are exact
	const rate = 1e9 / interval
	for name, policy := range map[string]func(o ...reserve.Option) (*reserve.Policy, error){
		"bursty": func(o ...reserve.Option) (*reserve.Policy, error) {
			return pace.Bursty(rate, append(o, pace.WithCapacity(8))...)
		},
		"nothing saved": func(o ...reserve.Option) (*reserve.Policy, error) {
			return pace.Bursty(rate, append(o, pace.WithBurst(0))...)
		},
		"upfront": func(o ...reserve.Option) (*reserve.Policy, error) {
			return pace.Bursty(rate, append(o, pace.WithCapacity(8), reserve.WithStored(8), reserve.PayUpfront())...)
		},
		"warming up": func(o ...reserve.Option) (*reserve.Policy, error) { return warmup.Policy(rate, s, o...) },
		"a window":   func(o ...reserve.Option) (*reserve.Policy, error) { return window.Policy(8, s, o...) },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(200 / limitertest.Slower) {
				random := rand.New(rand.NewPCG(seed, 1))
				clock := clockwork.NewFakeClock()
				of := reserve.Must(policy(reserve.WithClock(clock)))
				b := &byKey{clock, keyed.New(func(string) (*reserve.Policy, error) { return of, nil }), clock.Now()}
				plain := map[string]*reserve.Limiter{"a": of.Limiter(), "b": of.Limiter()}
				type open struct {
					key  string
					hold *keyhooks.Hold
					twin *reserve.Reservation
				}
				var holds []open
				for range 100 {
					key := []string{"a", "b"}[random.IntN(2)]
					n := 1 + random.IntN(4)
					switch random.IntN(6) {
					case 0, 1:
						wait := time.Duration(random.IntN(3)) * interval
						h, err := b.hold(key, n, wait)
						r, want := plain[key].ReserveWithin(ctx, n, wait)
						require.Equal(t, want, err)
						if err == nil {
							holds = append(holds, open{key, &h, &r})
							require.Equal(t, r.Delay(), h.Reservation.Delay())
						}
					case 2:
						require.Equal(t, plain[key].TryAcquire(n), b.TryAcquire(key, n))
					case 3, 4:
						if len(holds) == 0 {
							continue
						}
						i := random.IntN(len(holds))
						h := holds[i]
						holds = append(holds[:i], holds[i+1:]...)
						if random.IntN(2) == 0 {
							h.hold.Keep()
							if h.hold.Reservation.Permits() == 0 {
								h.hold.Cancel() // does nothing any more
							}
						} else {
							h.hold.Cancel()
							h.hold.Cancel()
							h.twin.Cancel()
						}
					case 5:
						b.Sweep()
						if len(holds) == 0 {
							clock.Advance(time.Duration(random.IntN(6*interval)) + 1)
						}
					}
					for key, l := range plain {
						require.Equal(t, l.NextFree(), b.one(key).NextFree(), "seed %d", seed)
						require.InDelta(t, l.Stored(), b.one(key).Stored(), 1e-9, "seed %d", seed)
					}
					for _, h := range holds {
						want := (*engine.Limiter)(plain[h.key]).Latest()
						got, known := h.hold.Outlook()
						require.True(t, known)
						require.InDelta(t, want.Stored, got.Stored, 1e-9)
						want.Stored = got.Stored
						require.Equal(t, want, got)
					}
				}
			}
		})
	}
}

// What is to be had at once leaves a key small; what is not, or is held twice, does not.
func TestAHoldLeavesAKeySmall(t *testing.T) {
	b := bursty(10, 100)
	b.Advance(s)
	for i := range 5 {
		h, err := b.hold("a", 1, 0)
		require.NoError(t, err)
		if i%2 == 0 {
			h.Keep()
		} else {
			h.Cancel()
		}
		_, known := h.Outlook()
		require.False(t, known, "it is over")
	}
	require.Zero(t, b.Promoted())
	require.Equal(t, 7., b.one("a").Stored())

	h, err := b.hold("b", 1, 0)
	require.NoError(t, err)
	require.Zero(t, b.Promoted())
	require.True(t, b.TryAcquire("b", 1))
	require.Equal(t, 1, b.Promoted())
	h.Cancel()
	require.Equal(t, 9., b.one("b").Stored())

	h, err = b.hold("c", 50, 0)
	require.NoError(t, err)
	h.Keep()
	h, err = b.hold("c", 1, time.Hour)
	require.NoError(t, err)
	require.Equal(t, 4*s, h.Reservation.Delay())
	require.Equal(t, 2, b.Promoted())
	_, err = b.hold("d", 0, 0)
	require.ErrorAs(t, err, new(*reserve.ValueError))
	_, err = bursty(1, 0).hold("a", 1, 0)
	require.ErrorIs(t, err, keyed.ErrTooManyKeys)
}

// A key that is held is not dropped, though it has become like new meanwhile.
func TestAKeyThatIsHeldStays(t *testing.T) {
	b := bursty(10, 100)
	b.Advance(s)
	h, err := b.hold("a", 1, 0)
	require.NoError(t, err)
	b.Advance(time.Minute)
	b.Sweep()
	require.Equal(t, 1, b.Len())
	h.Cancel()
	require.Equal(t, 10., b.one("a").Stored())
	b.Sweep()
	require.Zero(t, b.Len())

	free := keyed.New(func(string) (*reserve.Policy, error) { return pace.Bursty(1e300) })
	h, err = keyhooks.Of[string](free).Hold(ctx, "a", 1, 0, false)
	require.NoError(t, err)
	o, known := h.Outlook()
	require.True(t, known)
	require.Equal(t, 1e300, o.Rate)
	h.Keep()
}

// Many at the same time take and give back, and nothing is lost or won.
func TestHoldsAtTheSameTime(t *testing.T) {
	watchdog.Start(t)
	b := bursty(1, 100, pace.WithCapacity(10_000), reserve.WithStored(10_000))
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 1000 / limitertest.Slower {
				h, err := b.hold(fmt.Sprint(i%3), 1, 0)
				if err != nil {
					t.Error(err)
					return
				}
				if g%2 == 0 {
					h.Cancel()
				} else {
					h.Keep()
				}
			}
		})
	}
	all.Wait()
	taken := 0.
	for key := range 3 {
		taken += 10_000 - b.one(fmt.Sprint(key)).Stored()
	}
	require.InDelta(t, 4*(1000/limitertest.Slower), taken, 1e-6)
}

func TestAllocationsOfAHold(t *testing.T) {
	b := bursty(1e9, 100)
	b.Advance(time.Hour)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		h, _ := b.hold("a", 1, 0)
		h.Outlook()
		h.Keep()
	}))
	require.Zero(t, b.Promoted())
}
