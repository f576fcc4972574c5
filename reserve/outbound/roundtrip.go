package outbound

import (
	"net/http"
	"regexp"

	"github.com/nextfree/pace/reserve/outbound/internal/redirect"
)

// RoundTrip sends a request when it has its permits. If they would come too late for its context's deadline
// (http.Client's Timeout sets it), [WithMaxWait], or the limiter's own longest wait, it takes nothing and returns a
// *[reserve.WaitError] at once. If the context ends while it waits, it returns the context's cause. It does not change
// the request and always closes its body. An error response, such as 429, is returned as a response.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.upstreams != nil && redirect.Elsewhere(r) {
		return redirect.Out(t.base, r, r)
	}
	c := t.newCall(r)
	defer c.release()
	defer c.attempt.end()
	if err := c.prepare(); err != nil {
		return nil, c.refuse(err)
	}
	if c.free() {
		c.attempt.unsent = false
		return t.base.RoundTrip(r)
	}
	t.budget.request()
	for {
		if err := c.admit(); err != nil {
			return nil, c.refuse(err)
		}
		v, err := c.exchange()
		switch {
		case c.another(&v, err), v.again && c.again(v.resume):
		case err != nil:
			return nil, err
		default:
			return c.attempt.deliver(), nil
		}
	}
}

// CloseIdleConnections closes the idle connections of the base transport, as [http.Client.CloseIdleConnections] asks.
func (t *Transport) CloseIdleConnections() { (&http.Client{Transport: t.base}).CloseIdleConnections() }

func (c *call) exchange() (v verdict, err error) {
	a := &c.attempt
	switch err = a.send(); {
	case err == nil:
		c.answer(a.response)
		return c.obey(), nil
	case isRefusal(err):
		c.tries.torn = !untouched.MatchString(err.Error())
		a.response = &http.Response{
			Status: "429 Too Many Requests", StatusCode: http.StatusTooManyRequests,
			Header: http.Header{}, Body: http.NoBody, Request: a.outgoing,
		}
		return c.obey(), err
	}
	a.end() // before it is planned anew
	return v, err
}

// calm is how net/http, golang.org/x/net/http2 and quic-go word refusals by HTTP/2 (RFC 9113, 7) and HTTP/3 (RFC 9114,
// 8.1). Their types are not exported, or of another module.
var (
	calm = regexp.MustCompile(`stream error: stream ID \d+; (?:ENHANCE_YOUR_CALM|REFUSED_STREAM); received from peer|` +
		`http2: server sent GOAWAY and closed the connection; LastStreamID=\d+, ErrCode=ENHANCE_YOUR_CALM, debug="(.*)"|` +
		`\bH3_(?:EXCESSIVE_LOAD|REQUEST_REJECTED)(?:: |$)`)
	untouched = regexp.MustCompile(`REFUSED_STREAM|REQUEST_REJECTED`) // the server has not begun
)

// isRefusal reports whether an error is a refusal without a time. Too many pings are not too many requests.
func isRefusal(err error) bool {
	found := calm.FindStringSubmatch(err.Error())
	return found != nil && found[1] != "too_many_pings"
}
