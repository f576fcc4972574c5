package llm

import (
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

const day = 24 * time.Hour

func (t *Transport) hasBucket(k kind) bool { return t.bucket > 0 && !k.isDaily() }

// latest is the latest policy of a kind: most keys have the same.
type latest struct {
	n      int
	policy *reserve.Policy
	rate   float64
}

func (t *Transport) policy(k kind, n int) (p *reserve.Policy, permitsPerSecond float64) {
	t.policies.Lock()
	defer t.policies.Unlock()
	l := &t.latest[k]
	if l.policy == nil || l.n != n {
		l.n = n
		l.policy, l.rate = t.newPolicy(k, n)
	}
	return l.policy, l.rate
}

func (t *Transport) newPolicy(k kind, n int) (p *reserve.Policy, permitsPerSecond float64) {
	per := time.Minute
	if k.isDaily() {
		per = day
	}
	if t.hasBucket(k) {
		rate := reserve.Per(float64(n), per)
		return reserve.Must(pace.TokenBucket(rate, rate*max(0, t.bucket-t.margin).Seconds(), t.clocked...)), rate
	}
	if k == requests && t.window > 0 {
		part := max(1, int(int64(n)*int64(t.window)/int64(per)))
		n, per = part, time.Duration(int64(per)*int64(part)/int64(n))
	}
	per += t.margin
	return reserve.Must(window.Policy(n, per, t.clocked...)), reserve.Per(float64(n), per)
}
