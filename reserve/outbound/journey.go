package outbound

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve/outbound/internal/redirect"
)

// judge tells the upstreams how they served the call, and reports whether this one failed.
func (c *call) judge(v *verdict, err error) (failed bool) {
	a := &c.attempt
	gaveUp := err != nil && c.request.Context().Err() != nil
	if gaveUp || v.refused && (v.stop > 0 || a.response.StatusCode < 500) {
		return false // it says nothing
	}
	if err != nil || isFailure(a.response.StatusCode) {
		a.way.failed = a.sent
		c.rests(a.way, false)
		return true
	}
	c.worked()
	return false
}

// worked ends the rest of the upstream that has served the call. Upstreams that failed at the call rest anew.
func (c *call) worked() {
	if to := c.attempt.way; to.upstream.health.Worked(c.attempt.sent) {
		to.upstream.pause.Resume()
		for a := range to.charges.all {
			if a.limit.upstream {
				a.restop(c.t.now()) // the server's word holds
			}
		}
	}
	for _, w := range c.ways.served {
		if !w.failed.IsZero() {
			c.rests(w, true)
			w.failed = time.Time{}
		}
	}
}

func isFailure(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return true
	}
	return status >= 500
}

// rests stops an upstream that failed, for as long as its health says.
func (c *call) rests(w *way, sure bool) {
	now := c.t.now()
	if rest := w.upstream.health.Failed(w.failed, now, sure); rest > 0 && len(c.ways) > 1 {
		w.upstream.pause.PauseUntil(now.Add(rest))
	}
}

// another sends a refused or failed call to another upstream, if it can.
func (c *call) another(v *verdict, err error) bool {
	to := c.attempt.way
	if to.upstream == nil {
		return false
	}
	failed := c.judge(v, err)
	if c.tries.torn && !c.tries.repeatable && !c.t.repeatAny || !v.refused && !(failed && c.harmless(err)) {
		return false
	}
	to.refused = true
	for _, w := range c.ways.served {
		if !w.refused {
			return c.again(0)
		}
	}
	for _, w := range c.ways.served {
		w.refused = false // a retry may go to any
	}
	return false
}

func (c *call) harmless(err error) bool {
	switch {
	case c.tries.repeatable || c.t.repeatAny:
		return true
	case err != nil:
		return neverSent(err)
	}
	return c.attempt.response.StatusCode < 500
}

// neverSent reports whether there was no connection on which a request could have been sent.
func neverSent(err error) bool {
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") || errors.As(err, &certificate)
}

// choices sets what the call's place may choose from. Limits that are too small for it close an upstream to it, unless
// all are.
func (c *call) choices() {
	c.place.Key, _ = queue.StickyOf(c.request.Context())
	some := false
	for i, w := range c.ways.served {
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
func (a *attempt) goTo() {
	own := a.way.upstream
	if own.Prepare == nil {
		a.outgoing = own.Address(a.outgoing)
	} else {
		a.outgoing = withBodyOf(a.way.subject, a.outgoing)
	}
	if hold := own.health.Probe(); hold > 0 {
		own.pause.PauseUntil(a.t.now().Add(hold))
	}
}

func (c *call) answer(r *http.Response) {
	own := c.attempt.way.upstream
	if own == nil {
		return
	}
	r.Header.Del("Set-Cookie")
	r.Request = c.caller
	if location := r.Header.Get("Location"); location != "" {
		if to, err := c.attempt.outgoing.URL.Parse(location); err == nil {
			callers, within := own.own(to, c.caller.URL)
			r.Header.Set("Location", callers.String())
			if !within {
				r.Request = redirect.Leaving(c.caller)
			}
		}
	}
}
