// Package redirect tells which requests follow a redirect out of the upstreams.
package redirect

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// leaves is the context key of requests whose response redirects out of the upstreams.
type leaves struct{}

// Leaving returns a copy of a request for a response that redirects out of the upstreams.
func Leaving(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), leaves{}, true))
}

// Out sends a request past the upstreams. Its response is the caller's, and redirects out of them.
func Out(by http.RoundTripper, r, callers *http.Request) (*http.Response, error) {
	response, err := by.RoundTrip(r)
	if response != nil {
		response.Request = Leaving(callers)
	}
	return response, err
}

// Elsewhere reports whether a request follows a redirect out of the upstreams, to another host or another path.
func Elsewhere(r *http.Request) bool {
	first, left := r, false
	for first.Response != nil && first.Response.Request != nil {
		first = first.Response.Request
		left = left || first.Context().Value(leaves{}) != nil
	}
	return left || first != r && !SameServer(first.URL, r.URL)
}

// SameServer reports whether two URLs have the same scheme, host and port.
func SameServer(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && HostAndPort(a) == HostAndPort(b)
}

// HostAndPort returns a URL's host and port, in lower case.
func HostAndPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "80"
		if strings.EqualFold(u.Scheme, "https") {
			port = "443"
		}
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
