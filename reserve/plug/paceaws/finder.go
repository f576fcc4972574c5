package paceaws

import (
	"math"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/adapt"
	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve"
)

// A finder sets the rate of a limiter to the one that it finds. A nil one does nothing.
type finder struct {
	limiter limit.Limit

	mu   sync.Mutex
	rate adapt.Rate
}

func newFinder(limiter limit.Limit, by reserve.Reserver) (*finder, error) {
	if !limiter.Traits().Tunable {
		return nil, &reserve.ValueError{
			Package: "paceaws", Name: "the limiter of Adaptive", Value: by,
			Want: "one with Rate and Retime",
		}
	}
	ceiling := limiter.Rate()
	if math.IsInf(ceiling, 1) {
		return nil, &reserve.ValueError{
			Package: "paceaws", Name: "the rate of Adaptive's limiter", Value: ceiling,
			Want: "a finite one",
		}
	}
	return &finder{limiter: limiter, rate: adapt.New(ceiling)}, nil
}

func (f *finder) sent(now time.Time) {
	f.learn(func(r *adapt.Rate) { r.Sent(now, 1) })
}

func (f *finder) accepted(now, sent time.Time) {
	f.learn(func(r *adapt.Rate) { r.Accepted(now, sent, 1) })
}

func (f *finder) refused(now, sent, resume time.Time) {
	f.learn(func(r *adapt.Rate) { r.Refused(now, sent, resume, false) })
}

// learn has the rate learn something, and the limiter follow.
func (f *finder) learn(something func(*adapt.Rate)) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.rate.Now()
	something(&f.rate)
	if now := f.rate.Now(); now != before {
		f.limiter.Tune(now)
	}
}
