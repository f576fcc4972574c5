package inbound

import (
	"net/http"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
)

// PerKey limits the requests of each key apart, by limiters of the policy's, up to
// 1<<20 of them at a time: past that, new keys are a failure of the tier (see [FailOpen]). For
// the key function see [PerKeyBy].
func PerKey[K comparable](name string, key func(*http.Request) (K, error), policy *reserve.Policy, opts ...TierOption) Tier {
	if policy == nil {
		return Tier{name: name, err: noPolicy(name)}
	}
	// The quota comes first, so that an option can replace it.
	opts = append([]TierOption{func(t *Tier) error { t.quota = quotaOf(policy.Limiter().Outlook()); return nil }}, opts...)
	return PerKeyBy(name, key, keyed.New(func(K) (*reserve.Policy, error) { return policy, nil }), opts...)
}
