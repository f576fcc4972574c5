//go:build !queue

package rate

import (
	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

func tokenBucket(limit Limit, burst int, clock clockwork.Clock) *reserve.Limiter {
	return reserve.Must(pace.NewBursty(limit.pace(), pace.WithCapacity(float64(burst)), reserve.WithStored(float64(burst)),
		reserve.PayUpfront(), reserve.WithClock(clock)))
}

func (l *Limiter) retime() { reserve.Must(0, l.limiter.SetRate(l.limit.pace())) }

// resize does nothing: there is no way yet.
func (l *Limiter) resize() {}
