package outbound

import (
	"hash/maphash"
	"net/http"
	"strconv"
	"strings"

	"github.com/nextfree/pace/reserve/outbound/internal/redirect"
)

// Host returns a request's host and port, the key of a limit per server: "api.example.com:443" for
// https://API.example.com/v1.
func Host(r *http.Request) string { return redirect.HostAndPort(r.URL) }

// Credential returns a request's host and a hash of its Authorization header: the key of a limit per user of a server.
// The hash differs between processes and hides the credential.
func Credential(r *http.Request) string {
	return Host(r) + "#" + strconv.FormatUint(maphash.String(seed, r.Header.Get("Authorization")), 16)
}

// account returns a request's [Credential], or its [Host] if it has none or a signature (AWS, OAuth 1), which changes.
func account(r *http.Request) string {
	scheme, _, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case !ok:
	case strings.EqualFold(scheme, "Bearer"), strings.EqualFold(scheme, "Basic"), strings.EqualFold(scheme, "Token"),
		strings.EqualFold(scheme, "Bot"):
		return Credential(r)
	}
	return Host(r)
}

var seed = maphash.MakeSeed()
