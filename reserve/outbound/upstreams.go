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

// An Upstream is one of several servers, or one of several keys of a server, that can serve a request: see [NewUpstreams].
type Upstream struct {
	// Base is where requests go: its scheme and host take the place of the request's, its path is put before the request's, and its query
	// before the request's. It must have a scheme and a host.
	Base *url.URL
	// Header is set in each request, in place of what the request has under the same names: a credential. No other upstream gets it.
	Header http.Header
	// By is the upstream's limit. Upstreams of one account share a limiter. Nil: a limiter without a limit, which is stopped when the server says so.
	By reserve.Reserver
	// Tier: upstreams of a lower tier are used first, as long as one of them is free.
	Tier int
	// Prepare returns a request as it goes to the upstream, but for its body, or nil if the upstream does not serve it. The
	// limits of [WithLimit] and [PerKey] are asked with what it returns: so each upstream may have limits of its own. If By
	// is nil too, only those hold. Nil: Address, and the limits are asked with the caller's request.
	Prepare func(*http.Request) *http.Request
}

// NewUpstreams returns a transport that sends each request to the upstream that has permits for it first: several keys, or
// several deployments, used as one. Base is as in [New]. The path and the query of a request's URL count; its scheme and host do not.
//
//	keys := []outbound.Upstream{
//		{Base: api, Header: http.Header{"Authorization": {"Bearer " + keyA}}, By: limiterA},
//		{Base: api, Header: http.Header{"Authorization": {"Bearer " + keyB}}, By: limiterB},
//	}
//	transport, err := outbound.NewUpstreams(nil, keys)
//
// Exactly one upstream is charged. A refusal stops the one that it came from, as in New. The refused request goes to the next
// upstream at once, with or without [WithRetries], if it has no body, or has GetBody: to each at most once. If all are stopped, a request waits for
// the earliest, or gets a *[reserve.WaitError] with that time. The last refusal is the answer. Which upstream serves a request is decided at the last
// moment; pool.WithKey in its context prefers the one that served that key last.
//
// An upstream that fails (a broken connection, 5xx, 401, 403 or 404) rests for 1 s, doubling to 60 s; after a rest one
// call probes it. A failure counts if another upstream has served the same request, or if it is the second in a row.
// If its body can be sent again, the call goes on to the next upstream: with any method if it was never sent (there was
// no connection), and after 401, 403 and 404; after 5xx, or a connection that broke later, only if it does no harm to
// carry it out twice. That is so of idempotent methods (RFC 9110), of requests with an Idempotency-Key, and of all with
// [RetryNonIdempotent].
//
// A redirect within an upstream is rewritten to the caller's URL, so the client follows it through the transport. One that leads elsewhere is followed
// without pacing, and without any upstream's header. An upstream's Set-Cookie is removed, since a client's cookie jar would give the cookie to
// all upstreams. Response.Request is the caller's request, without the upstream's header.
//
// Further limits by [WithLimit] and [PerKey] hold for all upstreams together, with the caller's URL as their key. [Adaptive] does not change the
// limits of upstreams.
//
// It returns a *[reserve.ValueError] if there is no upstream, if one has no base URL with a scheme and a host, and the errors of New.
func NewUpstreams(base http.RoundTripper, members []Upstream, opts ...Option) (*Transport, error) {
	if len(members) == 0 {
		return nil, valueError("the number of upstreams", 0, "at least 1")
	}
	u := &upstreams{limit: limit{upstream: true}}
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
		s.limits = append(s.limits, u.limit)
		return nil
	}}, append(opts[:len(opts):len(opts)], func(s *settings) error { // when the clock is known
		policy := unlimited(s.clock)
		for _, own := range u.all {
			own.pause = policy.Limiter()
			if own.By == nil {
				own.By = policy.Limiter()
			}
		}
		return nil
	})...)...)
}

// upstreams are what requests may be sent to.
type upstreams struct {
	all    []*upstream
	limit  limit       // stands for that of each
	latest memory[int] // by the requests' keys: which has served the latest
}

type upstream struct {
	Upstream
	limited bool // By was given
	number  int
	pause   *reserve.Limiter // without a limit: it stops an upstream whose limiter can't be paused, or that fails
	health  health.Health
}

// except reports whether a member must not get the call.
func (c *call) except(member int) bool {
	w := &c.ways[member]
	return c.refusedBy[member] || w.subject == nil || w.large
}

// prefers returns the member that served the request's key last, or -1.
func (u *upstreams) prefers(p *queue.Place) int {
	if key, ok := queue.StickyOf(p.Hint.(*call).request.Context()); ok && key != "" {
		if member, ok := u.latest.get(key); ok {
			return member
		}
	}
	return -1
}

// chosen remembers which member serves a request's key.
func (u *upstreams) chosen(p *queue.Place, member int) {
	if key, ok := queue.StickyOf(p.Hint.(*call).request.Context()); ok && key != "" {
		u.latest.set(key, member)
	}
}

// goTo makes an attempt one at the upstream that its permits are of.
func (c *call) goTo(u *upstreams, member int) {
	own := u.all[member]
	c.upstream = own
	if own.Prepare == nil {
		c.outgoing = own.Address(c.outgoing)
	} else {
		c.outgoing = withBodyOf(c.subject, c.outgoing)
	}
	if hold := own.health.Probe(); hold > 0 {
		own.pause.PauseUntil(c.t.now().Add(hold))
	}
}
