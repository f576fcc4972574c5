package outbound

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"
)

// judge tells the upstreams how they served the call, and reports whether this one failed.
func (c *call) judge(v *verdict, err error) (failed bool) {
	gaveUp := err != nil && c.request.Context().Err() != nil
	if gaveUp || v.refused && (v.stop > 0 || c.response.StatusCode < 500) {
		return false // it says nothing
	}
	if err != nil || isFailure(c.response.StatusCode) {
		c.failed = c.sent
		c.rests(c.way, false)
		return true
	}
	if c.upstream.health.Worked(c.sent) {
		c.upstream.pause.Resume()
	}
	for _, w := range c.served {
		if !w.failed.IsZero() {
			c.rests(w, true)
			w.failed = time.Time{}
		}
	}
	return false
}

func isFailure(status int) bool {
	return status >= 500 || status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusNotFound
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
	if c.upstream == nil {
		return false
	}
	failed := c.judge(v, err)
	if !v.refused && !(failed && c.harmless(err)) {
		return false
	}
	c.refused = true
	for _, w := range c.served {
		if !w.refused {
			return c.again(0)
		}
	}
	for _, w := range c.served {
		w.refused = false // a retry may go to any
	}
	return false
}

func (c *call) harmless(err error) bool {
	switch {
	case c.attempt.repeatable || c.t.repeatAny:
		return true
	case err != nil:
		return neverSent(err)
	}
	return c.response.StatusCode < 500
}

// neverSent reports whether there was no connection on which a request could have been sent.
func neverSent(err error) bool {
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") || errors.As(err, &certificate)
}
