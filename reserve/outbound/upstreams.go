package outbound

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/queue"
	"github.com/nextfree/pace/reserve/outbound/internal/health"
)

// An Upstream is one of several servers, or keys of a server, that can serve a request: see [NewUpstreams].
type Upstream struct {
	// Base replaces a request's scheme and host, which it must have; its path and query go before the request's.
	Base *url.URL
	// Header replaces the request's headers of the same names: a credential. No other upstream gets it.
	Header http.Header
	// By is the upstream's limit. Upstreams of one account share a limiter. Nil: only the server's stops hold.
	By reserve.Reserver
	// Tier orders upstreams: free ones of the lowest tier are used first.
	Tier int
	// Prepare returns a request as it goes to the upstream, without its body; nil: the upstream does not serve it. The
	// limits of [WithLimit] and [PerKey] get it; if By is nil too, only they hold. Default: Base and Header make the
	// request, and the limits get the caller's.
	Prepare func(*http.Request) *http.Request
}

// NewUpstreams returns a transport that uses several keys or deployments as one: each request goes to the upstream that
// has permits first. Parameter base is as in [New].
//
//	keys := []outbound.Upstream{
//		{Base: api, Header: http.Header{"Authorization": {"Bearer " + keyA}}, By: limiterA},
//		{Base: api, Header: http.Header{"Authorization": {"Bearer " + keyB}}, By: limiterB},
//	}
//	transport, err := outbound.NewUpstreams(nil, keys)
//
// Only one upstream is charged, chosen at the last moment; pool.WithKey in a request's context prefers the upstream
// that served that key last. A refusal stops its upstream. If a request has no body, or has GetBody, it then goes to
// the next at once, to each at most once; the last refusal is the answer. If all are stopped, it waits for the
// earliest, or gets a *[reserve.WaitError] with that time.
//
// An upstream that fails (a broken connection, 5xx, 401, 403 or 404) rests for 1 s, doubling to 60 s; then one call
// probes it. A failure counts if another upstream served the same request, or if it is the second in a row. A call
// whose body can be sent again goes on to the next upstream: with any method if there was no connection, and after 401,
// 403 and 404; otherwise only with an idempotent method (RFC 9110), an Idempotency-Key, or [RetryNonIdempotent].
//
// A redirect within an upstream is rewritten to the caller's URL, so the client follows it through the transport. Other
// redirects are followed unpaced and without an upstream's header. Set-Cookie is removed: a client's jar would send it
// to all upstreams. Response.Request is the caller's.
//
// Limits of [WithLimit] and [PerKey] hold for all upstreams together. [Adaptive] does not change the upstreams' own.
//
// NewUpstreams returns a *[reserve.ValueError] if there is no upstream, or a Base without a scheme or a host, and the
// errors of New.
func NewUpstreams(base http.RoundTripper, members []Upstream, opts ...Option) (*Transport, error) {
	if len(members) == 0 {
		return nil, valueError("the number of upstreams", 0, "at least 1")
	}
	u := &upstreams{}
	for i, m := range members {
		if m.Base == nil || m.Base.Scheme == "" || m.Base.Host == "" {
			return nil, valueError(fmt.Sprintf("Base of upstream %d", i), m.Base, "a URL with a scheme and a host")
		}
		own, base := &upstream{Upstream: m, limited: m.By != nil, number: i}, *m.Base
		own.Base, own.Header = &base, m.Header.Clone()
		if m.By != nil && isnil.Value(m.By) {
			return nil, valueError(fmt.Sprintf("By of upstream %d", i), nil, "a Reserver, or nil without a type")
		}
		u.all = append(u.all, own)
	}
	return New(base, nil, append([]Option{func(s *settings) error {
		s.upstreams = u
		s.limits = append(s.limits, limit{cost: one, upstream: true})
		return nil
	}}, append(opts[:len(opts):len(opts)], func(s *settings) error { // when the clock is known
		policy := queue.Unlimited(s.clock)
		for _, own := range u.all {
			own.pause = policy.Limiter()
			if own.By == nil {
				own.By = policy.Limiter()
			}
		}
		return nil
	})...)...)
}

type upstreams struct {
	all    []*upstream
	sticky queue.Sticky
}

type upstream struct {
	Upstream
	limited bool // By was given
	number  int
	pause   *reserve.Limiter // stops a failing upstream, or one whose limiter can't be paused
	health  health.Health
}

// choices sets what the call's place may choose from. Limits that are too small for it close an upstream to it, unless
// all are.
func (c *call) choices() {
	c.place.Key, _ = queue.StickyOf(c.request.Context())
	some := false
	for i, w := range c.served {
		c.place.Options[i].Tier = w.upstream.Tier
		w.large = !w.fits()
		some = some || !w.large && !w.refused
	}
	c.place.Except = func(member int) bool {
		w := &c.ways[member]
		return w.subject == nil || w.refused || w.large && some
	}
}

// goTo readdresses an attempt to its upstream.
func (c *call) goTo() {
	own := c.upstream
	if own.Prepare == nil {
		c.outgoing = own.Address(c.outgoing)
	} else {
		c.outgoing = withBodyOf(c.subject, c.outgoing)
	}
	if hold := own.health.Probe(); hold > 0 {
		own.pause.PauseUntil(c.t.now().Add(hold))
	}
}
