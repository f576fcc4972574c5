package llm

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/internal/queue"
	"github.com/nextfree/pace/reserve/outbound/internal/bodies"
)

// Deployments is an [http.RoundTripper] that uses several deployments as one. It comes from [NewDeployments]. All
// methods may be called at the same time. It must not be copied.
type Deployments struct {
	door    *door
	queue   *fair.Queue
	classOf func(*http.Request) (class, tenant string)
}

// NewDeployments returns a transport that sends each call to the deployment that has room for it first. Deployments are
// several keys, or a model at OpenAI and at Azure. Base (nil: [http.DefaultTransport]) and the options are as in [New].
//
//	transport, err := llm.NewDeployments(nil, []llm.Deployment{
//		{Provider: llm.OpenAI(), Base: openai, Header: http.Header{"Authorization": {"Bearer " + key}},
//			Limits: llm.Limits{RequestsPerMinute: 1000, TokensPerMinute: 2_000_000}},
//		{Provider: llm.AzureOpenAI(), Base: azure, Header: http.Header{"Api-Key": {azureKey}},
//			Models: map[string]string{"gpt-4o": "gpt4o-sweden"},
//			Limits: llm.Limits{RequestsPerMinute: 500, TokensPerMinute: 1_000_000}},
//	})
//
// Calls wait in one line, and the deployment is chosen when a call is the first. It must serve the call's model and
// have room for the call. Of several it is the one of the lowest tier, and then the one that was not used for longest.
// The call is charged there and nowhere else, at that deployment's own estimate. A call larger than one deployment's
// limit goes to another. Take deployments of 1,000, 500 and 100 requests and 2, 1 and 0.2 million tokens a minute. A
// real trace of 8,819 calls takes 99 % of the sum of the limits, and no call is refused.
//
// The caller names the model as it likes: [Deployment].Models says what each deployment calls it, and the name is
// replaced in the body, or in the path. The deployment's headers replace the call's credentials: Authorization,
// Api-Key, X-Api-Key, X-Goog-Api-Key, OpenAI-Organization, OpenAI-Project, and Google's key in the query. These are
// removed. Scheme and host of the request do not count.
//
// A call that is refused (429, 503, 529) goes on to the next deployment at once. It keeps its place in the line if it
// has to wait. It goes to each deployment once, and the last refusal is the answer. A request whose body has more than
// 8 MiB and no GetBody is sent once. A deployment that fails (a broken connection, 5xx, 401, 403 or 404) rests for 1 s,
// doubling to 60 s, and its call goes on to the next one, too. Any other status is returned to the caller.
//
// A response's Set-Cookie is removed, and its Request is the caller's. A redirect to another host is followed without a
// deployment's header, and without pacing.
//
// What a deployment keeps (files, earlier responses, conversations) no other one knows: use [New] for calls that refer
// to that. A request that asks no model for anything goes to the first deployment. The name of a model in a form, as in
// transcriptions, is not replaced. Deployments that share a quota must be one. Limits on Redis ([WithLimiters]) are
// asked when the deployment has been chosen. With [outbound.WithRetries] a refused call waits where it was refused.
//
// It returns a *[reserve.ValueError] if there is no deployment, or one has no base URL with a scheme and a host. Its
// other errors are New's.
func NewDeployments(base http.RoundTripper, deployments []Deployment, opts ...Option) (*Deployments, error) {
	if len(deployments) == 0 {
		return nil, &reserve.ValueError{Package: "llm", Name: "the number of deployments", Value: 0, Want: "at least 1"}
	}
	d := &door{kicked: make(chan struct{}, 1)}
	all := &Deployments{door: d}
	opts = append(opts[:len(opts):len(opts)], func(s *settings) error {
		s.changed = d.kick
		return nil
	})
	for i, one := range deployments {
		if one.Base == nil || one.Base.Scheme == "" || one.Base.Host == "" {
			return nil, &reserve.ValueError{
				Package: "llm", Name: fmt.Sprintf("Base of deployment %d", i), Value: one.Base,
				Want: "a URL with a scheme and a host",
			}
		}
		one.Header = one.Header.Clone()
		if own := *one.Base; own.Path == "" {
			own.Path = "/" // else a request's path would have no slash
			one.Base = &own
		}
		transport, err := New(base, one.Provider, one.Limits, opts...)
		if err != nil {
			return nil, err
		}
		d.members = append(d.members, &member{Transport: transport, Deployment: one})
	}
	s := &d.members[0].settings
	d.clock = s.clock
	all.classOf = s.classOf
	if all.classOf == nil {
		all.classOf = func(r *http.Request) (class, tenant string) { return "", "" }
	}
	classes := s.classes
	if classes == nil {
		classes = []fair.Class{{}}
	}
	options := []fair.Option{fair.WithTenants(nil)}
	if s.clock != nil {
		options = append(options, fair.WithClock(s.clock))
	}
	var err error
	all.queue, err = fair.New(d, classes, options...)
	return all, err
}

// A route is one call on its way to one of several deployments.
type route struct {
	door     *door
	caller   *http.Request
	rest     io.ReadCloser   // of a body that can be sent only once; nil: it can be sent again, or was sent
	body     []byte          // nil: it is larger than 8 MiB, or there is none
	calls    []*call         // by member; nil: it does not serve the call
	requests []*http.Request // by member, without a body
	names    []string        // of the model, by member
	refused  []bool          // by member
	failed   []failedAt
	model    string // as the body names it
	tokens   int
	rank     queue.Rank

	through bool // it has got through to member, and is not charged yet; guarded by the door's lock
	member  int
	gone    atomic.Bool // it has its turn behind it
}

// RoundTrip sends a call to the deployment that has room for it first. Its errors are those of [Transport.RoundTrip],
// *[fair.FullError], and a *[reserve.ValueError] if no deployment serves its model. The request is not changed, and its
// body is always closed.
func (d *Deployments) RoundTrip(r *http.Request) (*http.Response, error) {
	first := d.door.members[0]
	if isElsewhere(r) {
		return first.base.RoundTrip(r)
	}
	e := endpointOf(r)
	if e.free {
		first.ignored.add(unpaced)
		response, err := first.base.RoundTrip(first.rewrite(r, &e, e.model))
		return toCaller(response, r), err
	}
	defer bodies.Close(r)
	o, err := d.route(r, &e)
	if err != nil {
		return nil, err
	}
	defer o.end()
	response, err := d.send(o)
	if err != nil && first.answer {
		if refusal := first.refusal(r, err); refusal != nil {
			return refusal, nil
		}
	}
	return toCaller(response, r), err
}

// route finds out which deployments serve a request, and what it would cost there.
func (d *Deployments) route(r *http.Request, e *endpoint) (*route, error) {
	members := d.door.members
	n := len(members)
	o := &route{
		door: d.door, caller: r, calls: make([]*call, n), requests: make([]*http.Request, n), names: make([]string, n),
		refused: make([]bool, n),
	}
	var p prompt
	read, err := p.readFrom(r, true)
	if err != nil {
		return nil, err
	}
	if o.body = p.body; o.body == nil {
		o.rest = read.Body
	}
	o.model = p.model
	model := p.model
	if e.model != "" {
		model = e.model
	}
	var large error
	for i, m := range members {
		name, ok := m.name(model)
		if !ok || name != model && e.model == "" && p.model != "" && o.body == nil {
			continue // it does not serve that, or the name can't be replaced
		}
		c := &call{Context: r.Context(), endpoint: *e, prompt: p, departs: o.charged}
		if name != model {
			c.model, c.endpoint.model = name, ""
		}
		o.names[i] = name
		o.requests[i] = m.rewrite(r, e, name)
		if own := modelIn(o.requests[i].URL.Path); own != "" {
			c.endpoint.model = own
		}
		m.enroll(c, o.requests[i])
		if err := c.fits(); err != nil {
			c.settleIn()
			large = err
			continue
		}
		o.calls[i] = c
		o.tokens = max(1, o.tokens, sum(c.input, c.output))
	}
	if o.tokens > 0 {
		return o, nil
	}
	if o.end(); large != nil {
		return nil, large
	}
	return nil, &reserve.ValueError{
		Package: "llm", Name: "the model", Value: model, Want: "one that a deployment serves",
	}
}

// end gives up what is left of the call's claims.
func (o *route) end() {
	o.charged()
	for _, c := range o.calls {
		if c != nil {
			c.settleIn()
		}
	}
}

// send sends the call, to one deployment after the other if it is refused.
func (d *Deployments) send(o *route) (*http.Response, error) {
	class, tenant := d.classOf(o.caller)
	for {
		o.gone.Store(false)
		ctx := queue.WithRank(context.WithValue(o.caller.Context(), routeKey{}, o), &o.rank)
		r, err := d.queue.Tenant(class, tenant).ReserveWithin(ctx, o.tokens, reserve.Forever)
		if err == nil {
			err = r.Wait(o.caller.Context())
		}
		if err != nil {
			return nil, err
		}
		o.gone.Store(true)
		sent := d.door.now()
		response, err := o.attempt(&r)
		failed := o.judge(sent, response, err)
		if !(failed || err == nil && isRefusal(response)) || !o.another() {
			return response, err
		}
		if err != nil {
			continue
		}
		io.CopyN(io.Discard, response.Body, 64<<10)
		response.Body.Close()
	}
}

// attempt sends the call to the deployment to which it has got through.
func (o *route) attempt(account *reserve.Reservation) (*http.Response, error) {
	m, c, r := o.door.members[o.member], o.calls[o.member], o.requests[o.member]
	c.spent = account.Settle
	switch {
	case o.rest != nil:
		r.Body, o.rest = o.rest, nil
	case o.body == nil:
		r.Body = nil
	default:
		body := o.body
		if name := o.names[o.member]; name != o.model && o.model != "" && c.prompt.json {
			if renamed, ok := rename(body, name); ok {
				body = renamed
			}
		}
		withBody(r, body)
		c.prompt.body = body
	}
	if m.asks {
		r = c.askForUsage(r)
	}
	c.prompt.body = nil
	return m.send(c, r.WithContext(c))
}

// judge notes how a deployment has served an attempt, and reports whether another one may serve it: no answer came, or
// one that is no answer to the request. A model can be asked twice.
func (o *route) judge(sent time.Time, response *http.Response, err error) (failed bool) {
	d, m := o.door, o.door.members[o.member]
	switch {
	case o.caller.Context().Err() != nil, err == nil && isRefusal(response):
		return false
	case err == nil && !isBroken(response):
		m.health.Worked(sent)
		d.mu.Lock()
		m.rests = time.Time{}
		d.mu.Unlock()
		for _, f := range o.failed {
			d.rest(d.members[f.member], d.members[f.member].health.Failed(f.sent, d.now(), true))
		}
		o.failed = nil
		return false
	}
	o.failed = append(o.failed, failedAt{o.member, sent})
	d.rest(m, m.health.Failed(sent, d.now(), false))
	return true
}

// failedAt is an attempt that has failed at a deployment.
type failedAt struct {
	member int
	sent   time.Time
}

// isBroken reports whether a response is that of a deployment that serves nobody.
func isBroken(r *http.Response) bool {
	switch r.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return true
	}
	return r.StatusCode >= 500
}

// another reports whether a refused call can go to another deployment.
func (o *route) another() bool {
	o.refused[o.member] = true
	if o.body == nil && o.caller.Body != nil && o.caller.Body != http.NoBody {
		return false
	}
	for i, c := range o.calls {
		if c != nil && !o.refused[i] {
			return true
		}
	}
	return false
}

// isRefusal reports whether a response says that the provider has no room for the call.
func isRefusal(r *http.Response) bool {
	switch r.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, 529:
		return true
	}
	return false
}

// toCaller makes a response one to the caller's request.
func toCaller(response *http.Response, r *http.Request) *http.Response {
	if response != nil {
		response.Header.Del("Set-Cookie")
		response.Request = r
	}
	return response
}

// isElsewhere reports whether a request follows a redirect to another host than that of the first request.
func isElsewhere(r *http.Request) bool {
	first := r
	for first.Response != nil && first.Response.Request != nil {
		first = first.Response.Request
	}
	return first != r && (first.URL.Host != r.URL.Host || first.URL.Scheme != r.URL.Scheme)
}

// Ignored returns what the transports of all deployments have ignored so far.
func (d *Deployments) Ignored() (sum Ignored) {
	for _, m := range d.door.members {
		n := m.Transport.Ignored()
		sum.Negative += n.Negative
		sum.Absurd += n.Absurd
		sum.Broken += n.Broken
		sum.Encoded += n.Encoded
		sum.Missing += n.Missing
		sum.Limits += n.Limits
		sum.Unpaced += n.Unpaced
		sum.Crowded += n.Crowded
	}
	return sum
}

// CloseIdleConnections closes those of the base transport, for [http.Client.CloseIdleConnections].
func (d *Deployments) CloseIdleConnections() { d.door.members[0].CloseIdleConnections() }
