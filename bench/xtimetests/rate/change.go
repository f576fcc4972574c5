package rate

import (
	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

func tokenBucket(limit Limit, burst int, clock clockwork.Clock) *reserve.Limiter {
	return reserve.Must(pace.NewTokenBucket(limit.pace(), float64(burst), reserve.WithClock(clock)))
}

// retime changes the rate. In x/time/rate what is owed is owed in tokens, so at twice the rate it is paid
// in half the time, which is Retime's way; with SetRate it would be paid when it was promised.
func (l *Limiter) retime() { reserve.Must(0, l.limiter.Retime(l.limit.pace())) }

func (l *Limiter) resize() {
	p := reserve.Must(pace.TokenBucket(l.limit.pace(), float64(l.burst), reserve.WithClock(l.clock)))
	reserve.Must(0, l.limiter.SetPolicy(p))
}
