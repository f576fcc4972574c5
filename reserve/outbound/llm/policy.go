package llm

import (
	"math"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/smooth"
)

type policies map[policyOf]*reserve.Policy

type policyOf struct {
	size  int32
	short bool // of requests, over a shorter stretch than a minute
	daily bool
	full  bool // a bucket
}

// maxPolicies bounds what is kept: servers may tell any limits.
const maxPolicies = 256

const day = 24 * time.Hour

func (t *Transport) hasBucket(k kind) bool { return t.bucket > 0 && !k.isDaily() }

func (t *Transport) policy(k kind, n int32) (p *reserve.Policy, permitsPerSecond float64) {
	is := policyOf{n, k == requests && t.window > 0, k.isDaily(), t.hasBucket(k)}
	t.table.mu.Lock()
	defer t.table.mu.Unlock()
	p, permitsPerSecond = t.policies[is], is.rate(t.margin)
	if p == nil {
		if len(t.policies) >= maxPolicies {
			clear(t.policies)
		}
		p = t.newPolicy(is)
		t.policies[is] = p
	}
	return p, permitsPerSecond
}

func (is policyOf) per() time.Duration {
	if is.daily {
		return day
	}
	return time.Minute
}

func (is policyOf) rate(margin time.Duration) float64 {
	if is.full {
		margin = 0
	}
	return reserve.Per(float64(is.size), is.per()+margin)
}

func (t *Transport) newPolicy(is policyOf) *reserve.Policy {
	n, per := int(is.size), is.per()
	if is.full {
		rate := is.rate(0)
		held := rate * max(0, t.bucket-t.margin).Seconds()
		return t.smoothPolicy("a bucket", rate, held, reserve.WithStored(held), reserve.PayUpfront())
	}
	if is.short {
		whole := n
		n = max(1, int(int64(n)*int64(t.window)/int64(per)))
		per = time.Duration(int64(per) * int64(n) / int64(whole))
	}
	return reserve.Must(window.Policy(n, per+t.margin, t.clocked()...))
}

func (t *Transport) unlimitedPolicy() *reserve.Policy {
	return t.smoothPolicy("a limiter without a limit", math.Inf(1), 0)
}

func (t *Transport) smoothPolicy(name string, rate, held float64, opts ...reserve.Option) *reserve.Policy {
	v := reserve.Variant{Package: "llm", Limiter: name, Curve: bucketOf(held)}
	return reserve.Must(reserve.NewPolicy(v, rate, append(opts, t.clocked()...)...))
}

func (t *Transport) clocked() []reserve.Option {
	if t.clock == nil {
		return nil
	}
	return []reserve.Option{reserve.WithClock(t.clock)}
}

func bucketOf(held float64) func(permitsPerSecond float64) *smooth.Curve {
	var at func(float64) *smooth.Curve
	at = func(permitsPerSecond float64) *smooth.Curve {
		c := &smooth.Curve{Rate: permitsPerSecond, Interval: smooth.Interval(permitsPerSecond), AtRate: at}
		if held > 0 {
			c.Capacity, c.Refill = held, permitsPerSecond/1e9
		}
		return c
	}
	return at
}
