package inbound

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve/internal/engine"
)

const (
	fieldPolicy = "Ratelimit-Policy"
	fieldLimit  = "Ratelimit"
	fieldXLimit = "X-Ratelimit-Limit"
	fieldXLeft  = "X-Ratelimit-Remaining"
	fieldXReset = "X-Ratelimit-Reset"
)

type fields struct {
	quotas     bool // RateLimit-Policy and RateLimit
	xRateLimit bool
	jitter     time.Duration
	policies   string // the value of RateLimit-Policy, unless some tier has a quota for each key
}

// outlooks say what a tier's limiter has to give, and false if that is unknown.
type outlooks func(i int) (engine.Outlook, bool)

func noOutlooks(int) (engine.Outlook, bool) { return engine.Outlook{}, false }

// A quota is a number of requests in a window. The zero quota is unknown, or there is no limit.
type quota struct{ requests, seconds int64 }

// quotaOf takes the time that fills a limiter's store, at least 1 s and long enough for one permit: a client that
// uses each window's quota is never refused.
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

// shareOf describes what a limiter has to give, with the permits of the next second, or the time until a request
// could pass (draft-11, section 4.1.2).
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

func (m *Middleware) quota(i int, look outlooks) quota {
	if t := &m.tiers[i]; !t.quotaByKey() {
		return t.quota
	}
	if o, ok := look(i); ok {
		return quotaOf(o)
	}
	return quota{}
}

// policies returns "user";q=2;w=1, "global";q=20;w=1.
func (m *Middleware) policies(look outlooks) string {
	if m.fields.policies != "" {
		return m.fields.policies
	}
	var room [128]byte
	b := room[:0]
	for i := range m.tiers {
		if m.tiers[i].dryRun {
			continue
		}
		if q := m.quota(i, look); q != (quota{}) {
			if len(b) > 0 {
				b = append(b, ", "...)
			}
			b = append(append(append(b, '"'), m.tiers[i].name...), `";q=`...)
			b = append(strconv.AppendInt(b, q.requests, 10), ";w="...)
			b = strconv.AppendInt(b, q.seconds, 10)
		}
	}
	return string(b)
}

// closest returns tier -1 if none is known.
func (m *Middleware) closest(claims []claim) (tier int, least quota, outlook engine.Outlook) {
	tier = -1
	for i := range claims {
		if m.tiers[i].dryRun || claims[i].cost < 1 {
			continue
		}
		o, ok := m.tiers[i].outlook(&claims[i])
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
	if !m.fields.quotas && !m.fields.xRateLimit {
		return
	}
	tier, least, outlook := m.closest(claims)
	policies := m.policies(func(i int) (engine.Outlook, bool) { return m.tiers[i].outlook(&claims[i]) })
	if tier < 0 {
		m.setPolicies(h, policies)
		return
	}
	m.set(h, tier, least, policies)
	if m.fields.xRateLimit {
		q := m.tiers[tier].quota
		if q == (quota{}) {
			q = quotaOf(outlook)
		}
		setX(h, q, int64(min(max(0, outlook.Stored), maxInteger)), full(outlook))
	}
}

// refusedFields says that nothing is left for retryAfter seconds (0: no time).
func (m *Middleware) refusedFields(h http.Header, r *http.Request, tier, retryAfter int) {
	if !m.fields.quotas && !m.fields.xRateLimit {
		return
	}
	look := func(i int) (engine.Outlook, bool) { return m.tiers[i].look(r) }
	policies := m.policies(look)
	if retryAfter < 1 {
		m.setPolicies(h, policies)
		return
	}
	m.set(h, tier, quota{requests: 0, seconds: int64(retryAfter)}, policies)
	if m.fields.xRateLimit {
		h.Del(fieldXLeft) // of a middleware around this one, which let the request pass
		setX(h, m.quota(tier, look), 0, time.Duration(retryAfter)*time.Second)
	}
}

// failedFields does not ask the limiter that has just failed.
func (m *Middleware) failedFields(h http.Header) { m.setPolicies(h, m.policies(noOutlooks)) }

func (m *Middleware) setPolicies(h http.Header, policies string) {
	if m.fields.quotas && policies != "" && !slices.Contains(h[fieldPolicy], policies) {
		h[fieldPolicy] = append(slices.Clip(h[fieldPolicy]), policies)
	}
}

func (m *Middleware) isOwn(value string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(value, `"`), `"`)
	return slices.ContainsFunc(m.tiers, func(t Tier) bool { return t.name == name })
}

func (m *Middleware) set(h http.Header, tier int, s quota, policies string) {
	if !m.fields.quotas {
		return
	}
	v := new(fieldValues) // one allocation for both fields
	b := append(append(append(v.text[:0], '"'), m.tiers[tier].name...), `";r=`...)
	b = append(strconv.AppendInt(b, s.requests, 10), ";t="...)
	b = strconv.AppendInt(b, s.seconds, 10)
	v.values = [2]string{unsafe.String(&b[0], len(b)), policies} // nothing writes to b any more
	values := &v.values
	if len(h[fieldLimit]) > 0 || len(h[fieldPolicy]) > 0 { // of a middleware around this one
		h[fieldLimit] = append(slices.DeleteFunc(slices.Clone(h[fieldLimit]), m.isOwn), values[0])
		m.setPolicies(h, policies)
		return
	}
	h[fieldLimit] = values[0:1:1]
	if policies != "" {
		h[fieldPolicy] = values[1:2:2]
	}
}

// fieldValues are RateLimit and RateLimit-Policy, and room for the first.
type fieldValues struct {
	values [2]string
	text   [48]byte
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
