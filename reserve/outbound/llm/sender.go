package llm

import (
	"net/http"

	"github.com/nextfree/pace/reserve/outbound/internal/bodies"
)

type sender struct{ base http.RoundTripper }

func (s sender) RoundTrip(r *http.Request) (*http.Response, error) {
	c := callOf(r)
	if c == nil { // it follows a redirect
		return s.base.RoundTrip(r)
	}
	if err := c.fits(); err != nil { // by limits that were not known when it came
		bodies.Close(r)
		return nil, err
	}
	if c.route != nil {
		r = c.route.goes(c, r)
	}
	c.depart()
	response, err := s.base.RoundTrip(r)
	if err != nil || response == nil { // package outbound makes an error of that
		return response, err
	}
	if response.Request == nil || callOf(response.Request) != c {
		response.Request = r
	}
	if response.Body == nil { // http.Client puts up with it, too
		response.Body = http.NoBody
	}
	c.account.observe(c, response)
	c.answered(response)
	return response, nil
}

func (s sender) CloseIdleConnections() { (&http.Client{Transport: s.base}).CloseIdleConnections() }
