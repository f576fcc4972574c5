package outbound

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/nextfree/pace/reserve/outbound/internal/redirect"
)

// Address returns a request as it goes to the upstream, with its Base and its Header.
func (u *Upstream) Address(r *http.Request) *http.Request {
	own := r.WithContext(r.Context())
	own.Header = r.Header.Clone()
	if own.Header == nil {
		own.Header = http.Header{}
	}
	for name, values := range u.Header {
		own.Header[http.CanonicalHeaderKey(name)] = values[:len(values):len(values)]
	}
	to := *r.URL
	base := *u.Base
	if base.Path == "" {
		base.Path = "/" // else a request's path would have no slash
	}
	to.Scheme, to.Host, to.User = base.Scheme, base.Host, base.User
	joined := base.JoinPath(strings.TrimPrefix(r.URL.EscapedPath(), "/"))
	if to.Path, to.RawPath = joined.Path, joined.RawPath; r.URL.Path == "" {
		to.Path, to.RawPath = base.Path, base.RawPath
	}
	if to.RawQuery = base.RawQuery; r.URL.RawQuery != "" {
		to.RawQuery = strings.TrimPrefix(base.RawQuery+"&"+r.URL.RawQuery, "&")
	}
	to.Opaque = "" // it could name another host to a proxy
	own.URL, own.Host = &to, ""
	return own
}

func withBodyOf(r, other *http.Request) *http.Request {
	own := r.WithContext(r.Context())
	own.Body, own.GetBody, own.ContentLength = other.Body, other.GetBody, other.ContentLength
	return own
}

// own returns an upstream's URL as one of the caller's, and any other as it is.
func (u *upstream) own(to, callers *url.URL) (own *url.URL, within bool) {
	prefix := strings.TrimSuffix(u.Base.Path, "/")
	rest, within := strings.CutPrefix(to.Path, prefix)
	if !redirect.SameServer(to, u.Base) || !within || rest != "" && rest[0] != '/' {
		return to, false
	}
	copied := *to
	own = &copied
	own.Scheme, own.Host, own.User, own.Path, own.RawPath = callers.Scheme, callers.Host, nil, rest, ""
	if raw, ok := strings.CutPrefix(to.EscapedPath(), strings.TrimSuffix(u.Base.EscapedPath(), "/")); ok {
		own.RawPath = raw
	}
	if added := u.Base.Query(); len(added) > 0 {
		own.RawQuery = without(to.RawQuery, added)
	}
	return own, true
}

func without(query string, values url.Values) string {
	return strings.Join(slices.DeleteFunc(strings.Split(query, "&"), func(one string) bool {
		pair, _ := url.ParseQuery(one)
		for name, value := range pair {
			return slices.Contains(values[name], value[0])
		}
		return false
	}), "&")
}
