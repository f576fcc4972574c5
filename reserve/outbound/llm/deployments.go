package llm

import (
	"fmt"
	"net/http"

	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/outbound/internal/bodies"
	"github.com/nextfree/pace/reserve/outbound/internal/redirect"
)

// Deployments is an [http.RoundTripper] that uses several deployments as one. All methods may be called at the same
// time. It must not be copied.
type Deployments struct {
	members []*member
	paced   *outbound.Transport
}

type member struct {
	*Transport // which does not pace
	Deployment
	upstream outbound.Upstream
}

// NewDeployments returns a transport that sends each call to the deployment that has room for it first. Deployments are
// several keys, or a model at OpenAI and at Azure; what shares a quota must be one deployment. Base (nil:
// [http.DefaultTransport]) and the options are as in [New].
//
// The calls for one model wait in one line. Of several deployments with room, the lowest tier is used, then the
// deployment idle for longest, or with pool.WithKey the last that served the key. A call larger than a deployment's
// limit goes to another. A real trace of 8,819 calls took 99.6 % of the sum of deployments of 1,000, 500 and 100
// requests and 2, 1 and 0.2 million tokens a minute; with deployments chosen in turn 17 %.
//
// The call's credentials are removed: Authorization, Api-Key, X-Api-Key, X-Goog-Api-Key, OpenAI-Organization,
// OpenAI-Project, and Google's key in the query. Scheme and host of the request do not count.
//
// A refused call (429, 503, 529) goes on to the next deployment at once, and keeps its place if it has to wait there.
// When each has refused it once, the last refusal is the answer, or [outbound.WithRetries] has it wait. A deployment
// that fails (a broken connection, 5xx, 401, 403 or 404) rests for 1 s, doubling to 60 s, and its call goes on, too. A
// body of more than 8 MiB without GetBody is sent once.
//
// Files, earlier responses and conversations are known to one deployment: use [New] for calls that refer to them. A
// request that asks no model for anything goes to the first deployment, unpaced, and a redirect to another host without
// a deployment's header.
//
// It returns a *[reserve.ValueError] without a deployment, or for a base URL without a scheme or a host, and New's
// errors.
func NewDeployments(base http.RoundTripper, deployments []Deployment, opts ...Option) (*Deployments, error) {
	if len(deployments) == 0 {
		return nil, valueError("the number of deployments", 0, "at least 1")
	}
	d := &Deployments{}
	var upstreams []outbound.Upstream
	for i, one := range deployments {
		if one.Base == nil || one.Base.Scheme == "" || one.Base.Host == "" {
			return nil, valueError(fmt.Sprintf("Base of deployment %d", i), one.Base, "a URL with a scheme and a host")
		}
		t, err := newTransport(base, one.Provider, one.Limits, opts)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			t.ignored = d.members[0].ignored
		}
		m := &member{Transport: t, Deployment: one}
		m.upstream = outbound.Upstream{Base: one.Base, Header: one.Header.Clone(), Tier: one.Tier}
		m.upstream.Prepare = func(r *http.Request) *http.Request { return routeOf(r).prepare(m, r) }
		d.members = append(d.members, m)
		upstreams = append(upstreams, m.upstream)
	}
	first := d.members[0]
	var err error
	of := append(first.limited(), outbound.RetryNonIdempotent())
	d.paced, err = outbound.NewUpstreams(sender{first.base}, upstreams, of...)
	return d, err
}

// RoundTrip sends a call as [NewDeployments] says. Its errors are those of [Transport.RoundTrip], *[fair.FullError],
// and a *[reserve.ValueError] if no deployment serves its model. The request is not changed, and its body is always
// closed.
func (d *Deployments) RoundTrip(r *http.Request) (*http.Response, error) {
	first := d.members[0]
	if redirect.Elsewhere(r) {
		return redirect.Out(first.base, r, r)
	}
	o := &route{Context: r.Context(), endpoint: endpointOf(r)}
	if o.endpoint.free {
		first.ignored.add(&first.ignored.Unpaced)
		response, err := redirect.Out(first.base, first.rewrite(r, &o.endpoint, o.endpoint.model), r)
		if response != nil {
			response.Header.Del("Set-Cookie")
		}
		return response, err
	}
	defer bodies.Close(r)
	response, err := d.send(o, r)
	return first.answered(r, response, err)
}

func (d *Deployments) send(o *route, r *http.Request) (response *http.Response, err error) {
	send, err := o.prompt.readFrom(r, true)
	if err != nil {
		return nil, err
	}
	send = send.WithContext(o)
	if o.prompt.body != nil {
		send = withBody(send, o.prompt.body)
	}
	defer func() {
		for _, c := range o.calls {
			c.over(response)
		}
	}()
	response, err = d.paced.RoundTrip(send)
	response, err = o.latest.orTooLarge(response, err)
	switch {
	case err == nil:
		if response.Request == send {
			response.Request = r
		}
	case len(o.calls) == 0 && o.large != nil:
		err = o.large
	case len(o.calls) == 0:
		err = valueError("the model", o.model(), "one that a deployment serves")
	}
	return response, err
}

// Ignored returns what all deployments have ignored so far.
func (d *Deployments) Ignored() Ignored { return d.members[0].ignored.read() }

// CloseIdleConnections closes the base transport's, for [http.Client.CloseIdleConnections].
func (d *Deployments) CloseIdleConnections() { d.paced.CloseIdleConnections() }
