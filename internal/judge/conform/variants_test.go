package conform

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/warmup"
)

// A Variant is a kind of limiter whose envelope is known.
type Variant struct {
	Name     string
	Rate     float64       // permits per second at the start
	Capacity float64       // permits; of a window, how many it allows
	Burst    time.Duration // in place of Capacity: what is saved up, as a time
	AtOnce   float64       // permits, of a warm-up that is paid upfront
	Per      time.Duration // of a window: its length
	Most     int           // of a calendar: so much of a request counts when it goes, the rest is of later periods
	Upfront  bool
	Fixed    bool // the rate can't be changed, and there are no pauses

	KeepsPermits bool // when the rate changes, since its capacity is a number of permits

	New    func() Subject
	Policy func(rate float64) *reserve.Policy
}

// A Subject is what every limiter has.
type Subject interface {
	ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error)
	TryAcquire(n int) bool
}

// A tunable subject is a *reserve.Limiter.
type tunable interface {
	Subject
	SetRate(permitsPerSecond float64) error
	Retime(permitsPerSecond float64) error
	SetPolicy(p *reserve.Policy) error
	PauseUntil(t time.Time)
	Resume()
	NextFree() time.Time
}

// one is one key of many.
type one struct{ *keyed.Limiters[string] }

func (o one) TryAcquire(n int) bool { return o.Limiters.TryAcquire("key", n) }
func (o one) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error) {
	return o.Limiters.ReserveWithin(ctx, "key", n, maxWait)
}

// kept is a limiter whose state is in a store.
type kept struct{ *shared.Limiter }

func (k kept) TryAcquire(n int) bool {
	return reserve.Must(k.Limiter.TryAcquire(context.Background(), n))
}

func inStore(p *reserve.Policy) Subject {
	return kept{reserve.Must(shared.NewIn(shared.Memory(), "key", p))}
}

// Variants returns every kind of limiter in the library.
func Variants() []Variant {
	var all []Variant
	add := func(v Variant, policy func(rate float64) (*reserve.Policy, error)) {
		v.Policy = func(rate float64) *reserve.Policy { return reserve.Must(policy(rate)) }
		v.New = func() Subject { return v.Policy(v.Rate).Limiter() }
		all = append(all, v)
		name := v.Name
		v.Fixed = true // of these the rate can't be set, or that moves no promise
		v.Name = name + ", in a store"
		v.New = func() Subject { return inStore(v.Policy(v.Rate)) }
		all = append(all, v)
		if v.Per == 0 && !strings.HasPrefix(v.Name, "warm") {
			v.Name = name + ", one key of many"
			v.New = func() Subject {
				p := v.Policy(v.Rate)
				return one{keyed.New(func(string) (*reserve.Policy, error) { return p, nil })}
			}
			all = append(all, v)
		}
	}
	for _, pay := range []struct {
		name string
		opts []reserve.Option
	}{{"paid later", nil}, {"paid upfront", []reserve.Option{reserve.PayUpfront()}}} {
		upfront := pay.opts != nil
		for _, rate := range []float64{5, 1, 7.3} {
			for _, capacity := range []float64{0, 2, 10} {
				add(Variant{Name: fmt.Sprintf("%v a second, capacity %v, %s", rate, capacity, pay.name), Rate: rate, Capacity: capacity, Upfront: upfront, KeepsPermits: true},
					func(rate float64) (*reserve.Policy, error) {
						return pace.Bursty(rate, append([]reserve.Option{pace.WithCapacity(capacity), reserve.WithStored(capacity)}, pay.opts...)...)
					})
			}
			for _, burst := range []time.Duration{300 * time.Millisecond, 2 * time.Second} {
				add(Variant{Name: fmt.Sprintf("%v a second, burst %v, %s", rate, burst, pay.name), Rate: rate, Burst: burst, Upfront: upfront},
					func(rate float64) (*reserve.Policy, error) {
						return pace.Bursty(rate, append([]reserve.Option{pace.WithBurst(burst)}, pay.opts...)...)
					})
			}
		}
		atOnce := 0.0
		if upfront {
			atOnce = 5 // three of a warm limiter cost what one of a cold one does, and two permits for what comes back over changes
		}
		add(Variant{Name: "warm-up, " + pay.name, Rate: 5, AtOnce: atOnce, Upfront: upfront}, func(rate float64) (*reserve.Policy, error) {
			return warmup.Policy(rate, 2*time.Second, pay.opts...)
		})
	}
	add(Variant{Name: "window", Rate: 5, Capacity: 5, Per: time.Second}, func(float64) (*reserve.Policy, error) {
		return window.Policy(5, time.Second)
	})
	// A quota by the clock: the end of one period and the beginning of the next one are a stretch with two quotas.
	for _, period := range []calendar.Period{calendar.Every(time.Second), calendar.FromFirst(time.Second)} {
		add(Variant{Name: period.String(), Rate: 5, Capacity: 10, Per: time.Second, Most: 5}, func(float64) (*reserve.Policy, error) {
			return calendar.Policy(5, period)
		})
	}
	return all
}
