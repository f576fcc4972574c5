package inbound

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve/internal/hooks"
	"github.com/nextfree/pace/reserve/internal/keyhooks"
)

// The fields' names, as http.Header spells them.
const (
	fieldPolicy = "Ratelimit-Policy"
	fieldLimit  = "Ratelimit"
	fieldXLimit = "X-Ratelimit-Limit"
	fieldXLeft  = "X-Ratelimit-Remaining"
	fieldXReset = "X-Ratelimit-Reset"
)

// policies returns the value of RateLimit-Policy: "user";q=2;w=1, "global";q=20;w=1.
func policies(tiers []Tier) string {
	var b []byte
	for i := range tiers {
		t := &tiers[i]
		if t.dryRun || t.quota == (quota{}) {
			continue
		}
		if len(b) > 0 {
			b = append(b, ", "...)
		}
		b = append(append(append(b, '"'), t.name...), `";q=`...)
		b = append(strconv.AppendInt(b, t.quota.requests, 10), ";w="...)
		b = strconv.AppendInt(b, t.quota.seconds, 10)
	}
	return string(b)
}

// A share is the number of requests that a client may send within a time.
type share struct{ requests, seconds int64 }

// shareOf describes the permits that a limiter has to give, in the terms of draft-11, section
// 4.1.2: permits that flow in within the time count. The time is 1 s, or longer if no
// request could pass before. At 50/s with nothing stored the first of 50 passes after 20 ms.
func shareOf(o hooks.Outlook) share {
	s := share{seconds: ceilSeconds(o.Wait)}
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

// less reports whether a is closer to refusing than b: fewer requests in the same time.
func (a share) less(b share) bool {
	return float64(a.requests)*float64(b.seconds) < float64(b.requests)*float64(a.seconds)
}

// quotaHeaders sets the headers of a response to a request that passes.
func (m *Middleware) quotaHeaders(h http.Header, held []keyhooks.Hold) {
	if !m.quotas && !m.xRateLimit {
		return
	}
	closest, least := -1, share{}
	var outlook hooks.Outlook
	for i := range held {
		if m.tiers[i].dryRun {
			continue
		}
		o, ok := m.tiers[i].outlook(&held[i])
		if !ok {
			continue
		}
		if s := shareOf(o); closest < 0 || s.less(least) {
			closest, least, outlook = i, s, o
		}
	}
	if closest < 0 {
		m.setPolicies(h)
		return
	}
	m.set(h, closest, least)
	if m.xRateLimit {
		m.setX(h, closest, int64(min(max(0, outlook.Stored), maxInteger)), full(outlook))
	}
}

// full returns how long it takes at the most until all of a limit may be used again.
func full(o hooks.Outlook) time.Duration {
	switch {
	case o.Capacity <= o.Stored:
		return o.Wait
	case o.Window: // all requests that it counts now have left it by then
		return seconds(o.Capacity / o.Rate)
	}
	return saturate.Add(o.Wait, seconds((o.Capacity-o.Stored)/o.Rate))
}

// setPolicies sets RateLimit-Policy alone, where no tier is known to be the closest.
func (m *Middleware) setPolicies(h http.Header) {
	if m.quotas && m.policies != "" {
		h[fieldPolicy] = []string{m.policies}
	}
}

// refusedHeaders sets the quota headers of a refusal: nothing is left until the client is to come
// back. All of them say the same time, so that clients which read another one than
// Retry-After do not come back together either (draft-11, section 8.5).
func (m *Middleware) refusedHeaders(h http.Header, tier, retryAfter int) {
	m.set(h, tier, share{requests: 0, seconds: int64(retryAfter)})
	if m.xRateLimit {
		m.setX(h, tier, 0, time.Duration(retryAfter)*time.Second)
	}
}

// set sets RateLimit-Policy and RateLimit.
func (m *Middleware) set(h http.Header, tier int, s share) {
	if !m.quotas {
		return
	}
	var room [64]byte
	b := append(append(append(room[:0], '"'), m.tiers[tier].name...), `";r=`...)
	b = append(strconv.AppendInt(b, s.requests, 10), ";t="...)
	b = strconv.AppendInt(b, s.seconds, 10)

	values := &[2]string{string(b), m.policies} // one allocation for both
	h[fieldLimit] = values[0:1:1]
	if m.policies != "" {
		h[fieldPolicy] = values[1:2:2]
	}
}

// setX sets the older fields.
func (m *Middleware) setX(h http.Header, tier int, left int64, reset time.Duration) {
	if q := m.tiers[tier].quota; q != (quota{}) {
		h[fieldXLimit] = []string{strconv.FormatInt(q.requests, 10)}
	}
	h[fieldXLeft] = []string{strconv.FormatInt(left, 10)}
	at := time.Now().Add(saturate.Add(reset, time.Second-1)) // rounded up
	h[fieldXReset] = []string{strconv.FormatInt(at.Unix(), 10)}
}
