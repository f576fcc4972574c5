package outbound

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/reserve/internal/adapt"
)

// A refused limit of a fixed rate is derated: each call holds its limiter longer, for 25 times the stop, so that stops
// take at most 4 % of the time. A refusal meanwhile doubles it; afterwards half is taken back, and half of the rest
// after as long again. Refusals without an acceptance between them are one event: an outage or a block says nothing of
// the rate.
const (
	deratedAfter = time.Second // from the end of the stop: before, the server has room
	leastDerated = time.Minute // of a stop of 1 s and less
	deratedBy    = 0.04        // of the time of a call's permits, at first
	mostDerated  = 0.12        // at the third event in a row; more slows a briefly fallen limit too much
)

type derated struct {
	memory[*derating]
	used atomic.Bool // fast path: some limit was derated
}

type derating struct {
	mu          sync.Mutex
	from, until time.Time
	lasts       time.Duration
	by          float64
	accepted    bool // a call sent since was accepted
}

// begin derates a limit after a refusal whose stop ends at resume.
func (d *derated) begin(a *charge, sent, heard, resume time.Time) {
	d.used.Store(true)
	of := d.getOr(keys{a.limit, a.key}, func() *derating { return new(derating) })
	of.mu.Lock()
	defer of.mu.Unlock()
	if sent.After(of.from) {
		by := of.now(sent)
		if of.accepted {
			by *= 2
		}
		of.by, of.accepted = min(max(by, deratedBy), mostDerated), false
		of.from = resume.Add(deratedAfter)
	}
	of.lasts = max(leastDerated, adapt.PerStop*resume.Sub(heard))
	if until := resume.Add(of.lasts); until.After(of.until) {
		of.until = until
	}
}

func (d *derated) accept(a *charge, sent time.Time) {
	if !d.used.Load() {
		return
	}
	if of, ok := d.get(keys{a.limit, a.key}); ok {
		of.mu.Lock()
		of.accepted = of.accepted || sent.After(of.from)
		of.mu.Unlock()
	}
}

// now returns by how much the limit is derated.
func (of *derating) now(t time.Time) float64 {
	by := of.by
	if late := t.Sub(of.until); of.lasts > 0 && late >= 0 {
		by /= math.Exp2(1 + float64(late/of.lasts))
	}
	if by < deratedBy {
		return 0
	}
	return by
}

func (d *derated) hold(a *charge, now time.Time) {
	l, ok := a.By.(tunable)
	if !ok || !d.used.Load() {
		return
	}
	of, ok := d.get(keys{a.limit, a.key})
	if !ok {
		return
	}
	of.mu.Lock()
	by := of.now(now)
	if now.Before(of.from) {
		by = 0
	}
	of.mu.Unlock()
	if by > 0 {
		l.PauseUntil(now.Add(time.Duration(min(by*float64(a.Permits)/l.Rate(), 1) * float64(time.Second))))
	}
}
