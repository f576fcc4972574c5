package calendar

import "github.com/nextfree/pace/internal/saturate"

func (l *ledger) SetRate(now int64, permitsPerSecond float64) {
	changed := *l.rule
	changed.rate, changed.quota = permitsPerSecond, quotaOf(permitsPerSecond, l.period)
	l.change(now, &changed)
}

func (l *ledger) Retime(now int64, permitsPerSecond float64) {
	l.SetRate(now, permitsPerSecond)
	for i := range l.queue {
		if r := &l.queue[i]; r.latest != asap {
			r.latest = never
		}
	}
	l.known = 0
	l.advance(now)
}

// change replaces the rule. What is used of this period counts in the new rule's.
func (l *ledger) change(now int64, r *rule) {
	l.advance(now)
	l.placed()
	for i := range l.queue {
		if q := &l.queue[i]; q.latest != asap {
			q.latest = min(q.latest, q.at)
		}
	}
	if r.period != l.period {
		switch {
		case r.period.kind != fromFirst:
			l.state.span = r.period.around(l.now)
		case l.state.end != closed.end:
			l.state.end = max(saturate.Add(l.state.begin, int64(r.period.length)), l.now+1)
		}
		l.state.paced = min(l.state.paced, l.now)
	}
	if used := l.state.used; used > r.quota { // within the old quota nothing is owed for it
		l.state.used = r.quota + max(0, used-max(l.quota, r.quota))
	}
	l.rule, l.known = r, 0
	l.advance(now)
}
