package conform

import (
	"fmt"
	"math"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/model"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/warmup"
)

// A kind is what limiters are made of.
type kind struct {
	rate    float64
	burst   time.Duration // where the capacity follows the rate,
	fixed   float64       // and where it does not
	isFixed bool
	stored  float64
	upfront bool
	unit    int           // permits in one: where an interval is shorter than a nanosecond, single ones tell nothing
	grain   time.Duration // the limiter's clock shows multiples of it; 0: nanoseconds

	warm *model.WarmUp // of a warming-up limiter, in place of a store
}

func (k kind) String() string {
	store := fmt.Sprint("burst ", k.burst)
	switch {
	case k.warm != nil:
		store = fmt.Sprintf("warm-up of %v, cold factor %v", time.Duration(k.warm.Period), k.warm.ColdFactor)
	case k.isFixed:
		store = fmt.Sprint("capacity ", k.fixed)
	}
	return fmt.Sprintf("%v/s, %s, stored %v, upfront %v", k.rate, store, k.stored, k.upfront)
}

func (k kind) model() *model.Limiter {
	c := model.Config{Rate: k.rate, Capacity: model.Burst(k.burst.Seconds()), Stored: k.stored, Upfront: k.upfront, Warm: k.warm}
	if k.upfront {
		c.Capacity = func(rate float64) float64 { return max(1, rate*k.burst.Seconds()) }
	}
	if k.isFixed {
		c.Capacity, c.KeepsPermits = model.Fixed(k.fixed), true
	}
	return model.New(c)
}

// capacity is what the limiter can save up and give at once, in permits. What a warming-up one stores is no
// cheaper than what it gives fresh.
func (k kind) capacity() float64 {
	switch {
	case k.warm != nil && k.upfront:
		return k.warm.ColdFactor // a cold permit's time
	case k.warm != nil:
		return 0
	case k.isFixed:
		return k.fixed
	case k.upfront:
		return max(1, k.rate*k.burst.Seconds())
	}
	return k.rate * k.burst.Seconds()
}

// exact says whether all times are whole nanoseconds, and sums of few powers of two, so that no
// rounding is excused.
func (k kind) exact() bool {
	power, _ := math.Frexp(1e9 / k.rate)
	return power == 0.5 && 1e9/k.rate >= 1024 && k.warm == nil && k.grain == 0
}

// roundUp returns the next time that the limiter's clock can show.
func (k kind) roundUp(d time.Duration) time.Duration {
	if k.grain == 0 {
		return d
	}
	return (d + k.grain - 1) / k.grain * k.grain
}

func (k kind) interval() float64 { return 1e9 / k.rate }

// dyadic is a rate whose interval is a power of two nanoseconds: dyadic(27) is 7.45/s.
func dyadic(power int) float64 { return 1e9 / float64(int64(1)<<power) }

func (k kind) limiter(opts ...reserve.Option) (*reserve.Limiter, error) {
	p, err := k.policy(opts...)
	if err != nil {
		return nil, err
	}
	return p.Limiter(), nil
}

func (k kind) policy(opts ...reserve.Option) (*reserve.Policy, error) {
	opts = append(opts, reserve.WithStored(k.stored))
	if k.upfront {
		opts = append(opts, reserve.PayUpfront())
	}
	switch {
	case k.warm != nil:
		return warmup.Policy(k.rate, time.Duration(k.warm.Period), append(opts, warmup.WithColdFactor(k.warm.ColdFactor))...)
	case k.isFixed:
		opts = append(opts, pace.WithCapacity(k.fixed))
	default:
		opts = append(opts, pace.WithBurst(k.burst))
	}
	return pace.Bursty(k.rate, opts...)
}

// kinds are the limiters that random queues are run on. The first half of them is exact.
func kinds(upfront bool) (all []kind) {
	stores := []kind{
		{fixed: 0, isFixed: true},
		{burst: time.Second},
		{fixed: 10, isFixed: true, stored: 10},
		{fixed: 1, isFixed: true},
		{fixed: 2.5, isFixed: true, stored: 1.25},
		{fixed: 6, isFixed: true, stored: 3},
		{fixed: 40, isFixed: true, stored: math.Inf(1)},
		{burst: 300 * time.Millisecond, stored: 1},
	}
	for _, rate := range []float64{dyadic(27), dyadic(27), dyadic(20), dyadic(27), 10, 1000, 3, 7.3, 3e9} {
		for _, k := range stores {
			k.rate, k.upfront, k.unit = rate, upfront, 1
			if rate > 1e9 {
				k.unit = 1e6
				k.fixed *= 1e6
				k.stored *= 1e6
				k.burst /= 1e3
			}
			all = append(all, k)
		}
	}
	return all
}

// warming are warming-up limiters.
func warming(upfront bool) (all []kind) {
	for _, rate := range []float64{10, 3, 7.3, 1000, 2e6} {
		for _, k := range []kind{
			{warm: &model.WarmUp{Period: 2e9, ColdFactor: 3}, stored: math.Inf(1)},
			{warm: &model.WarmUp{Period: 2e9, ColdFactor: 3}},
			{warm: &model.WarmUp{Period: 1e9, ColdFactor: 1}, stored: math.Inf(1)},
			{warm: &model.WarmUp{Period: 8e9, ColdFactor: 7}, stored: math.Inf(1)},
			{warm: &model.WarmUp{Period: 5e8, ColdFactor: 1.5}, stored: 2},
		} {
			k.rate, k.upfront, k.unit = rate, upfront, 1
			if rate > 1e6 {
				k.unit = 1000
			}
			all = append(all, k)
		}
	}
	return all
}
