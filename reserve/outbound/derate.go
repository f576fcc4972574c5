package outbound

import (
	"math"
	"time"

	"github.com/nextfree/pace/internal/adapt"
)

// derate derates a limit.
func (a *charge) derate(something func(*adapt.Rate)) {
	if l, ok := a.By.(tunable); ok && !math.IsInf(l.Rate(), 1) {
		a.state.derated.CompareAndSwap(nil, &derating{rate: adapt.Known(l.Rate())})
		a.derated(something)
	}
}

// derated changes what is believed of a limit's rate, if it was derated, and returns which part of the rate that is:
// the limiter's may have changed since.
func (a *charge) derated(something func(*adapt.Rate)) (part float64) {
	of := a.state.derated.Load()
	if of == nil {
		return 1
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	something(&of.rate)
	return of.rate.Now() / of.rate.Ceiling()
}

func (a *charge) hold(now time.Time) {
	permits := float64(a.Permits)
	part := a.derated(func(r *adapt.Rate) { r.Sent(now, permits) })
	if l, ok := a.By.(tunable); ok && part < 1 {
		longer := permits / l.Rate() * (1/part - 1)
		l.PauseUntil(now.Add(time.Duration(min(longer, 1) * float64(time.Second))))
	}
}
