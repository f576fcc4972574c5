package inbound

import (
	"net/http"
	"strings"
)

// wantsText reports whether a client would rather have text/plain than application/problem+json: its
// Accept header names a type of text, as browsers' do, and no JSON. Weights don't count.
func wantsText(r *http.Request) bool {
	accept := strings.ToLower(strings.Join(r.Header["Accept"], ","))
	return strings.Contains(accept, "text/") && !strings.Contains(accept, "json")
}
