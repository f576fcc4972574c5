package llm

import (
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

// latest is the latest policy of a kind: most keys have the same.
type latest struct {
	n       int
	learned bool
	policy  *reserve.Policy
}

func (t *Transport) policy(k kind, n int, learned bool) *reserve.Policy {
	t.policies.Lock()
	defer t.policies.Unlock()
	l := &t.latest[k]
	if l.policy == nil || l.n != n || l.learned != learned {
		*l = latest{n, learned, t.newPolicy(k, n, learned)}
	}
	return l.policy
}

// newPolicy makes a window, or a bucket. What is learned of a day is a bucket: that is how it was found to be one.
func (t *Transport) newPolicy(k kind, n int, learned bool) *reserve.Policy {
	per := time.Minute
	switch {
	case learned && k == dayRequests:
		return reserve.Must(pace.TokenBucket(reserve.Per(float64(n), 24*time.Hour), float64(n), t.clocked...))
	case k == dayRequests || k == dayTokens:
		per = 24 * time.Hour
	case t.bucket > 0:
		rate := reserve.Per(float64(n), per)
		return reserve.Must(pace.TokenBucket(rate, rate*max(0, t.bucket-t.margin).Seconds(), t.clocked...))
	case k == requests && t.window > 0:
		part := max(1, int(int64(n)*int64(t.window)/int64(per)))
		n, per = part, time.Duration(int64(per)*int64(part)/int64(n))
	}
	return reserve.Must(window.Policy(n, per+t.margin, t.clocked...))
}
