package inbound

import (
	"context"
	"net/http"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/keyhooks"
)

// defaultMaxKeys takes some 110 MB for addresses.
const defaultMaxKeys = 1 << 20

// PerKey limits the requests of each key apart, by limiters of the policy's, up to
// [MaxKeys] of them at a time. For the key function see [PerKeyBy].
//
// No client is refused because there are too many others, but some of them then share a limiter. As
// soon as three quarters of the room are taken, a /24 of IPv4 or a /48 of IPv6 gets no more than
// 1/4096 of it, and a /16 or a /32 no more than 1/64; the rest of its clients share one limiter in
// each /24 or /48. So an attacker with a whole /44 takes three quarters of the room, and takes
// nothing away from clients in other networks. When all room is taken, new clients everywhere share
// a limiter with their /24 or /48, and when there are too many of those, with others of 1024 groups
// of /16 and /32. Keys that are neither addresses nor a [Pair] with one share limiters in such
// groups, too.
func PerKey[K comparable](
	name string, key func(*http.Request) (K, error), policy *reserve.Policy, opts ...TierOption,
) Tier {
	t := Tier{name: name, maxKeys: defaultMaxKeys}
	switch {
	case policy == nil:
		t.err = noPolicy(name)
		return t
	case key == nil:
		t.err = noKey(name)
		return t
	}
	t.quota = quotaOf(engine.Outlook(policy.Limiter())) // before the options, so that one can replace it
	t = t.with(opts)
	limiters := newCrowd[K](policy, t.maxKeys)
	t.peek = peekFor(key, limiters.peek)
	t.shared = limiters.shared.Load
	t.reserve = func(ctx context.Context, r *http.Request, n int, maxWait time.Duration) (h keyhooks.Hold, err error) {
		var k K
		if k, err = key(r); err == nil {
			h, err = limiters.hold(ctx, k, n, maxWait)
		}
		return
	}
	return t
}

// MaxKeys sets for how many keys a [PerKey] tier has room at a time, 1 or more; a key whose limiter
// is full again needs none. A key of an address takes some 110 bytes, so long as its policy's
// limiters keep no list (as a window's do) and its requests don't have to wait; otherwise some 300.
// Default: 1<<20.
func MaxKeys(n int) TierOption {
	return func(t *Tier) error {
		if n < 1 {
			return &reserve.ValueError{Package: "inbound", Name: "MaxKeys", Value: n, Want: "at least 1 key"}
		}
		if t.maxKeys == 0 {
			return &reserve.ValueError{Package: "inbound", Name: "MaxKeys", Value: n, Want: "a tier from PerKey"}
		}
		t.maxKeys = n
		return nil
	}
}
