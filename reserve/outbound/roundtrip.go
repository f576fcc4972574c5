package outbound

import (
	"fmt"
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
	defer c.end()
	if err := c.prepare(); err != nil {
		return nil, c.refuse(err)
	}
	if c.free() {
		c.unsent = false
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
			return c.deliver(), nil
		}
	}
}

// CloseIdleConnections closes the idle connections of the base transport, as [http.Client.CloseIdleConnections] asks.
func (t *Transport) CloseIdleConnections() { (&http.Client{Transport: t.base}).CloseIdleConnections() }

func (c *call) exchange() (v verdict, err error) {
	switch err = c.send(); {
	case err == nil:
		return c.obey(), nil
	case isRefusal(err):
		c.tries.torn = !untouched.MatchString(err.Error())
		c.response = &http.Response{
			Status: "429 Too Many Requests", StatusCode: http.StatusTooManyRequests,
			Header: http.Header{}, Body: http.NoBody, Request: c.outgoing,
		}
		return c.obey(), err
	}
	c.end() // before it is planned anew
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

func (c *call) send() (err error) {
	c.goes()
	defer c.count(-1)
	c.response, err = c.t.base.RoundTrip(c.outgoing)
	switch {
	case err != nil:
		return err
	case c.response == nil:
		return valueError(fmt.Sprintf("the response of %T", c.t.base), nil, "a response or an error")
	case c.response.Body == nil:
		c.response.Body = http.NoBody
	}
	c.answer(c.response)
	return nil
}

func (c *call) goes() {
	waited := c.sent.Sub(c.begin)
	c.t.log.waited(c.sent, c.request, waited)
	if hook := c.t.hooks.Waited; hook != nil {
		hook(c.request, waited)
	}
	c.unsent, c.phase = false, out
	c.count(1)
}

// deliver gives the caller the response, with the places in flight until the body is over.
func (c *call) deliver() *http.Response {
	response := c.response
	c.response = nil
	if len(c.seats) > 0 {
		response.Body = placed(c.request.Context(), response.Body, c.seats)
		c.seats = nil
	}
	return response
}

func (c *call) refuse(err error) error {
	if hook := c.t.hooks.Refused; hook != nil {
		hook(c.request, err)
	}
	return err
}

func (c *call) count(n int64) {
	for i := range c.charges {
		c.charges[i].state.out.Add(n)
	}
}
