package llm

import (
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/window"
)

const day = 24 * time.Hour

// latest is the latest policy of a kind: most keys have the same.
type latest struct {
	n      int
	span   span
	policy *reserve.Policy
}

func (t *Transport) policy(k kind, n int, span span) *reserve.Policy {
	t.policies.Lock()
	defer t.policies.Unlock()
	l := &t.latest[k]
	if l.policy == nil || l.n != n || l.span != span {
		*l = latest{n, span, t.newPolicy(k, n, span)}
	}
	return l.policy
}

func (t *Transport) newPolicy(k kind, n int, span span) *reserve.Policy {
	per := time.Minute
	switch {
	case span == dayBucket:
		return reserve.Must(pace.TokenBucket(reserve.Per(float64(n), day), float64(n), t.clocked...))
	case span == dayPeriod:
		return reserve.Must(calendar.Policy(n, calendar.FromFirst(day), t.clocked...))
	case k.isDay():
		per = day
	case t.bucket > 0:
		rate := reserve.Per(float64(n), per)
		return reserve.Must(pace.TokenBucket(rate, rate*max(0, t.bucket-t.margin).Seconds(), t.clocked...))
	case k == requests && t.window > 0:
		part := max(1, int(int64(n)*int64(t.window)/int64(per)))
		n, per = part, time.Duration(int64(per)*int64(part)/int64(n))
	}
	return reserve.Must(window.Policy(n, per+t.margin, t.clocked...))
}
