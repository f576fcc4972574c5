package inbound

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/saturate"
)

const (
	fieldPolicy = "Ratelimit-Policy"
	fieldLimit  = "Ratelimit"
	fieldXLimit = "X-Ratelimit-Limit"
	fieldXLeft  = "X-Ratelimit-Remaining"
	fieldXReset = "X-Ratelimit-Reset"
)

// A quota is a number of requests in a window; the zero quota is unknown, or no limit.
type quota struct{ requests, seconds int64 }

// quotaOf takes the time that fills a limiter's store, at least 1 s and long enough for a permit.
func quotaOf(o engine.Outlook) quota {
	const rounding = 1e-9 // of 1000/3600.0 * 3600
	if math.IsInf(o.Rate, 1) || o.Rate <= 0 {
		return quota{}
	}
	seconds := math.Ceil(max(1, o.Capacity/o.Rate, 1/o.Rate) * (1 - rounding))
	requests := math.Floor(seconds * o.Rate * (1 + rounding))
	if !(seconds <= maxInteger && requests <= maxInteger) {
		return quota{}
	}
	return quota{requests: int64(requests), seconds: int64(seconds)}
}

// maxInteger is the largest Integer of a structured field (RFC 9651, section 3.3.1).
const maxInteger = 999_999_999_999_999

// shareOf describes what a limiter has to give, with the permits of the next second, or the time until a request could
// pass (draft-11, section 4.1.2).
func shareOf(o engine.Outlook) quota {
	s := quota{seconds: ceilSeconds(o.Wait)}
	left := o.Stored
	if !o.Window {
		const rounding = 1e-6
		if rest := float64(s.seconds) - o.Wait.Seconds(); rest > 0 { // not infinity times 0
			left += o.Rate*rest + rounding
		}
		if o.Wait > 0 {
			left++
		}
	}
	s.requests = int64(min(max(1, math.Floor(left)), maxInteger))
	return s
}

func (a quota) less(b quota) bool {
	return float64(a.requests)*float64(b.seconds) < float64(b.requests)*float64(a.seconds)
}

func full(o engine.Outlook) time.Duration {
	switch {
	case o.Capacity <= o.Stored:
		return o.Wait
	case o.Window: // all requests that it counts now have left it by then
		return seconds(o.Capacity / o.Rate)
	}
	return saturate.Add(o.Wait, seconds((o.Capacity-o.Stored)/o.Rate))
}

func (t *Tier) quotaByKey() bool { return t.quota == quota{} && t.all == nil && t.clients == nil }

func (t *Tier) quotaFor(c *claim) quota {
	if c != nil && t.quotaByKey() {
		if o, ok := c.outlook(); ok {
			return quotaOf(o)
		}
	}
	return t.quota
}

// policyField returns "user";q=2;w=1, "global";q=20;w=1; claims may be nil.
func (m *Middleware) policyField(claims []claim) string {
	if m.policies != "" {
		return m.policies
	}
	var room [128]byte
	b := room[:0]
	for i := range m.tiers {
		var c *claim
		if claims != nil {
			c = &claims[i]
		}
		q := m.tiers[i].quotaFor(c)
		if m.tiers[i].dryRun || q == (quota{}) {
			continue
		}
		if len(b) > 0 {
			b = append(b, ", "...)
		}
		b = appendQuota(b, m.tiers[i].name, ";q=", q.requests, ";w=", q.seconds)
	}
	return string(b)
}

func appendQuota(b []byte, name, first string, n int64, second string, seconds int64) []byte {
	b = append(append(append(b, '"'), name...), '"')
	b = strconv.AppendInt(append(b, first...), n, 10)
	return strconv.AppendInt(append(b, second...), seconds, 10)
}

func (m *Middleware) closest(claims []claim) (tier int, least quota, outlook engine.Outlook) {
	tier = -1
	for i := range claims {
		if m.tiers[i].dryRun || claims[i].cost < 1 {
			continue
		}
		o, ok := claims[i].outlook()
		if !ok || math.IsInf(o.Rate, 1) {
			continue
		}
		if s := shareOf(o); tier < 0 || s.less(least) {
			tier, least, outlook = i, s, o
		}
	}
	return tier, least, outlook
}

func (m *Middleware) quotaFields(h http.Header, claims []claim) {
	if m.withoutQuotas && !m.xRateLimit {
		return
	}
	tier, least, outlook := m.closest(claims)
	if tier < 0 {
		m.setPolicies(h, m.policyField(claims))
		return
	}
	m.set(h, claims, tier, least)
	if m.xRateLimit {
		q := m.tiers[tier].quota
		if q == (quota{}) {
			q = quotaOf(outlook)
		}
		setX(h, q, int64(min(max(0, outlook.Stored), maxInteger)), full(outlook))
	}
}

// refusedFields says that nothing is left for retryAfter seconds (0: no time).
func (m *Middleware) refusedFields(h http.Header, claims []claim, tier, retryAfter int) {
	if retryAfter < 1 {
		m.setPolicies(h, m.policyField(claims))
		return
	}
	m.set(h, claims, tier, quota{requests: 0, seconds: int64(retryAfter)})
	if m.xRateLimit {
		h.Del(fieldXLeft) // of a middleware around this one, which let the request pass
		setX(h, m.tiers[tier].quotaFor(&claims[tier]), 0, time.Duration(retryAfter)*time.Second)
	}
}

func (m *Middleware) setPolicies(h http.Header, policies string) {
	if !m.withoutQuotas && policies != "" && !slices.Contains(h[fieldPolicy], policies) {
		h[fieldPolicy] = append(slices.Clip(h[fieldPolicy]), policies)
	}
}

// set adds RateLimit and RateLimit-Policy, with one allocation unless a middleware around this one has set them.
func (m *Middleware) set(h http.Header, claims []claim, tier int, s quota) {
	if m.withoutQuotas {
		return
	}
	v := new(struct {
		values [2]string
		text   [48]byte
	})
	b := appendQuota(v.text[:0], m.tiers[tier].name, ";r=", s.requests, ";t=", s.seconds)
	v.values = [2]string{unsafe.String(&b[0], len(b)), m.policyField(claims)} // nothing writes to b any more
	if len(h[fieldLimit]) > 0 {
		h[fieldLimit] = append(slices.Clip(h[fieldLimit]), v.values[0])
	} else {
		h[fieldLimit] = v.values[0:1:1]
	}
	if policies := v.values[1:2:2]; policies[0] != "" && len(h[fieldPolicy]) == 0 {
		h[fieldPolicy] = policies
	} else {
		m.setPolicies(h, policies[0])
	}
}

// setX sets the older fields, unless an outer middleware has less left.
func setX(h http.Header, q quota, left int64, reset time.Duration) {
	if before := h[fieldXLeft]; len(before) > 0 {
		if n, err := strconv.ParseInt(before[0], 10, 64); err == nil && n <= left {
			return
		}
	}
	if q != (quota{}) {
		h[fieldXLimit] = []string{strconv.FormatInt(q.requests, 10)}
	}
	h[fieldXLeft] = []string{strconv.FormatInt(left, 10)}
	at := time.Now().Add(saturate.Add(reset, time.Second-1)) // rounded up
	h[fieldXReset] = []string{strconv.FormatInt(at.Unix(), 10)}
}
