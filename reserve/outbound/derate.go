package outbound

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/reserve/internal/adapt"
)

// A refused limit of a fixed rate is derated by the law of adaptive rates. Its limiter keeps its rate, but each call
// holds it longer.
type derated struct {
	memory[*derating]
	used atomic.Bool // fast path: some limit was derated
}

type derating struct {
	mu   sync.Mutex
	rate adapt.Rate
}

// learn changes what is believed of a limit's rate, if it was derated.
func (d *derated) learn(a *charge, something func(*adapt.Rate)) (rate float64, ok bool) {
	if !d.used.Load() {
		return 0, false
	}
	of, ok := d.get(keys{a.limit, a.key})
	if !ok {
		return 0, false
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	something(&of.rate)
	return of.rate.Now(), true
}

// refuse derates a limit.
func (d *derated) refuse(a *charge, something func(*adapt.Rate)) {
	if l, ok := a.By.(tunable); ok {
		d.used.Store(true)
		d.getOr(keys{a.limit, a.key}, func() *derating { return &derating{rate: adapt.Known(l.Rate())} })
		d.learn(a, something)
	}
}

func (d *derated) accept(a *charge, sent, heard time.Time) {
	d.learn(a, func(r *adapt.Rate) { r.Accepted(heard, sent, float64(a.Permits)) })
}

func (d *derated) hold(a *charge, now time.Time) {
	permits := float64(a.Permits)
	if rate, ok := d.learn(a, func(r *adapt.Rate) { r.Sent(now, permits) }); ok {
		l := a.By.(tunable)
		longer := permits/rate - permits/l.Rate()
		if longer > 0 {
			l.PauseUntil(now.Add(time.Duration(min(longer, 1) * float64(time.Second))))
		}
	}
}
