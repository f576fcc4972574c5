package llm

import (
	"cmp"
	"context"
	"net/http"
	"time"
)

// route is a call's way to one of several deployments, and the request's context.
type route struct {
	context.Context
	endpoint endpoint
	prompt   prompt  // without a body: that can be sent only once, and not be changed
	calls    []*call // at the deployments that serve it
	latest   *call   // which was sent
	large    error   // of a deployment whose limits are too small
}

type routeKey struct{}

func (o *route) Value(key any) any {
	switch key.(type) {
	case routeKey:
		return o
	case callKey:
		return o.latest
	}
	return o.Context.Value(key)
}

func routeOf(r *http.Request) *route {
	o, _ := r.Context().Value(routeKey{}).(*route)
	return o
}

func (o *route) model() string { return cmp.Or(o.endpoint.model, o.prompt.model) }

// prepare returns the request without its body; nil: the deployment does not serve it.
func (o *route) prepare(m *member, r *http.Request) *http.Request {
	model := o.model()
	name, ok := m.name(model)
	if !ok || name != model && o.endpoint.model == "" && o.prompt.model != "" && o.prompt.body == nil {
		return nil // the name can't be replaced
	}
	c := &call{Context: o, endpoint: o.endpoint, prompt: o.prompt, route: o, name: name}
	own := m.rewrite(r, &o.endpoint, name)
	c.model, c.endpoint.model = name, modelIn(own.URL.Path)
	m.enroll(c, own)
	c.prompt.body = nil
	if err := c.fits(); err != nil {
		c.account.leave()
		o.large = err
		return nil
	}
	o.calls = append(o.calls, c)
	return own.WithContext(c)
}

func (o *route) goes(c *call, r *http.Request) *http.Request {
	if before := o.latest; before != nil && before != c {
		before.leave()
	}
	if o.latest = c; c.left.Swap(false) { // it comes back
		c.sent = time.Time{}
	}
	body := o.prompt.body
	if body == nil {
		return r
	}
	if c.name != o.prompt.model && o.prompt.model != "" && c.prompt.json {
		body = o.prompt.renamed(c.name)
		r = withBody(r, body)
	}
	if c.account.of.asks {
		r = c.askForUsage(r, body)
	}
	return r
}
