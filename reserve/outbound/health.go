package outbound

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"
)

type outcome int

const (
	unknown outcome = iota // nothing
	healthy
	broken
)

func (c *call) outcomeOf(v *verdict, err error) outcome {
	switch {
	case err != nil && c.request.Context().Err() != nil: // the caller gave up
		return unknown
	case err != nil:
		return broken
	case v.refused && (v.stop > 0 || c.response.StatusCode < 500):
		return unknown
	}
	switch status := c.response.StatusCode; {
	case status >= 500, status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound:
		return broken
	}
	return healthy
}

func (c *call) judge(of outcome) {
	u, now := c.t.upstreams, c.t.now()
	switch of {
	case broken:
		c.failedAt = append(c.failedAt, failedAt{c.upstream.number, c.sent})
		u.rests(c.upstream.number, now, c.upstream.health.Failed(c.sent, now, false))
	case healthy:
		if c.upstream.health.Worked(c.sent) {
			c.upstream.pause.Resume()
		}
		for _, f := range c.failedAt {
			u.rests(f.member, now, u.all[f.member].health.Failed(f.sent, now, true))
		}
		c.failedAt = nil
	}
}

type failedAt struct {
	member int
	sent   time.Time
}

func (u *upstreams) rests(member int, now time.Time, rest time.Duration) {
	if rest > 0 && len(u.all) > 1 {
		u.all[member].pause.PauseUntil(now.Add(rest))
	}
}

// another sends a refused or failed call to another upstream, if it can.
func (c *call) another(v *verdict, err error) bool {
	if c.upstream == nil {
		return false
	}
	of := c.outcomeOf(v, err)
	c.judge(of)
	if !v.refused && !(of == broken && c.harmless(err)) {
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
