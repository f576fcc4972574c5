package calendar

import (
	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/saturate"
)

func (l *ledger) SetRate(now int64, permitsPerSecond float64) {
	changed := *l.rule
	changed.rate, changed.quota = permitsPerSecond, quotaOf(permitsPerSecond, l.period)
	l.change(now, &changed)
}

func (l *ledger) Retime(now int64, permitsPerSecond float64) {
	l.SetRate(now, permitsPerSecond)
	l.Release()
	l.Advance(now)
}

func (l *ledger) Change(now int64, to engine.Ledger) { l.change(now, to.(*ledger).rule) }

// change replaces the rule. What is used of this period counts in the new rule's.
func (l *ledger) change(now int64, r *rule) {
	l.Advance(now)
	l.Keep()
	if r.period != l.period {
		switch {
		case r.period.kind != fromFirst:
			l.state.span = r.period.around(l.Now)
		case l.state.end != closed.end:
			l.state.end = max(saturate.Add(l.state.begin, int64(r.period.length)), l.Now+1)
		}
	}
	// What was used within the old quota is not owed to later periods.
	l.state.beyond = max(0, min(l.state.used, l.quota+l.state.beyond)-r.quota)
	l.rule = r
	l.state.paced = l.repaced(l.state)
	l.Advance(now)
}
