package outbound

import (
	"time"

	"github.com/nextfree/pace/reserve/internal/adapt"
)

// derate derates a limit.
func (a *charge) derate(something func(*adapt.Rate)) {
	if l, ok := a.By.(tunable); ok {
		a.state.derated.CompareAndSwap(nil, &derating{rate: adapt.Known(l.Rate())})
		a.derated(something)
	}
}

// derated changes what is believed of a limit's rate, if it was derated.
func (a *charge) derated(something func(*adapt.Rate)) (rate float64, ok bool) {
	of := a.state.derated.Load()
	if of == nil {
		return 0, false
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	something(&of.rate)
	return of.rate.Now(), true
}

func (a *charge) hold(now time.Time) {
	permits := float64(a.Permits)
	if rate, ok := a.derated(func(r *adapt.Rate) { r.Sent(now, permits) }); ok {
		l := a.By.(tunable)
		longer := permits/rate - permits/l.Rate()
		if longer > 0 {
			l.PauseUntil(now.Add(time.Duration(min(longer, 1) * float64(time.Second))))
		}
	}
}
