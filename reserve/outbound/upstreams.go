package outbound

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/reserve"
	binding "github.com/nextfree/pace/reserve/internal/late"
	"github.com/nextfree/pace/reserve/pool"
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
	u := &upstreams{}
	var list []pool.Member[*upstream]
	for i, m := range members {
		if m.Base == nil || m.Base.Scheme == "" || m.Base.Host == "" {
			return nil, valueError(fmt.Sprintf("Base of upstream %d", i), m.Base, "a URL with a scheme and a host")
		}
		own := &upstream{base: *m.Base, header: m.Header.Clone(), by: m.By}
		if own.base.Path == "" {
			own.base.Path = "/" // else a request's path would have no slash
		}
		if m.By != nil && isnil.Value(m.By) {
			return nil, valueError(fmt.Sprintf("By of upstream %d", i), nil, "a Reserver, or nil without a type")
		}
		u.all = append(u.all, own)
		list = append(list, pool.Member[*upstream]{Value: own, Tier: m.Tier})
	}
	return New(base, nil, append([]Option{func(s *settings) error {
		s.upstreams = u
		s.limits = append(s.limits, limit{scope: func(*http.Request) (any, reserve.Reserver) { return u, u.by }})
		return nil
	}}, append(opts[:len(opts):len(opts)], func(s *settings) (err error) { // when the clock is known
		var options []pool.Option
		if s.clock != nil {
			options = append(options, pool.WithClock(s.clock))
		}
		for i, own := range u.all {
			if own.by == nil {
				own.by = unlimited(s.clock).Limiter()
			}
			list[i].By = own.by
		}
		if u.pool, err = pool.New(list, options...); err == nil {
			u.by = u.pool.Reserver()
		}
		return err
	})...)...)
}

// upstreams are what requests may be sent to.
type upstreams struct {
	all  []*upstream
	pool *pool.Pool[*upstream]
	by   reserve.Reserver // the pool's
}

type upstream struct {
	base   url.URL
	header http.Header
	by     reserve.Reserver
	health health
}

// choose begins a call: each of its attempts goes to an upstream that has not refused it. U may be nil.
func (u *upstreams) choose(c *call) {
	if u == nil {
		return
	}
	c.refusedBy = make([]bool, len(u.all))
	c.ctx = binding.WithExcept(c.ctx, func(member int) bool { return c.refusedBy[member] })
}

// unbind makes an attempt one at any upstream.
func (c *call) unbind() {
	if u := c.t.upstreams; u != nil {
		a := &c.charges[0]
		a.By, a.key, c.upstream = u.by, u, nil
	}
}

// bind makes an attempt one at the upstream that its permits are of.
func (c *call) bind() {
	u := c.t.upstreams
	if u == nil {
		return
	}
	a := &c.charges[0]
	own, member, ok := u.pool.Of(&a.Held)
	if !ok {
		return
	}
	a.By, a.key = own.by, member
	c.upstream, c.member = own, member
	c.outgoing = own.rewrite(c.outgoing)
	if hold := own.health.probe(); hold > 0 {
		u.pool.PauseUntil(member, c.t.now().Add(hold))
	}
}
