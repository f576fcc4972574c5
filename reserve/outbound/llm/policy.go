package llm

import (
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/smooth"
)

// policies are those of limits, which many keys have in common.
type policies map[policyOf]*reserve.Policy

// A policyOf says which policy one is.
type policyOf struct {
	size  int32
	short bool // of requests, over a shorter stretch than a minute
	daily bool
	full  bool // a bucket
}

// maxPolicies bounds what is remembered: servers may tell any limits.
const maxPolicies = 64

// policy returns that of a limit of n, a minute or a day.
func (t *Transport) policy(k kind, n int32, daily bool) *reserve.Policy {
	is := policyOf{n, k == requests && t.window > 0 && !daily && n < unknown, daily, t.bucket > 0 && !k.isDaily()}
	t.table.mu.Lock()
	p := t.policies[is]
	t.table.mu.Unlock()
	if p != nil {
		return p
	}
	p = t.newPolicy(is)
	t.table.mu.Lock()
	defer t.table.mu.Unlock()
	if len(t.policies) >= maxPolicies {
		clear(t.policies)
	}
	t.policies[is] = p
	return p
}

func (t *Transport) newPolicy(is policyOf) *reserve.Policy {
	n, per := int(is.size), time.Minute
	if is.daily {
		per = day
	}
	var opts []reserve.Option
	if t.clock != nil {
		opts = append(opts, reserve.WithClock(t.clock))
	}
	if is.full {
		rate := float64(n) / per.Seconds()
		held := float64(n)
		if !is.daily {
			held = rate * max(0, t.bucket-t.margin).Seconds()
		}
		opts = append(opts, reserve.WithStored(held), reserve.PayUpfront())
		bucket := reserve.Variant{Package: "llm", Limiter: "a bucket", Curve: bucketOf(held)}
		return reserve.Must(reserve.NewPolicy(bucket, rate, opts...))
	}
	if is.short {
		whole := n
		n = max(1, int(int64(n)*int64(t.window)/int64(per)))
		per = time.Duration(int64(per) * int64(n) / int64(whole))
	}
	return reserve.Must(window.Policy(n, per+t.margin, opts...))
}

// bucketOf returns the curve of a token bucket that holds so many permits, by its rate.
func bucketOf(held float64) func(permitsPerSecond float64) *smooth.Curve {
	var at func(float64) *smooth.Curve
	at = func(permitsPerSecond float64) *smooth.Curve {
		return &smooth.Curve{
			Rate: permitsPerSecond, Capacity: held, Interval: smooth.Interval(permitsPerSecond),
			Refill: permitsPerSecond / 1e9, Full: true, AtRate: at,
		}
	}
	return at
}
