package llm

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"

	"github.com/nextfree/pace/reserve/pacetest"
)

// serve serves a handler in memory, and returns how to reach it: a client's base transport,
// whatever the address, and how to stop it. HTTP/2 is spoken over TLS. HTTP/1.1 is not, even if the
// address says https: openai-go closes a stream before its end, so each call has a connection of
// its own, and in a test the handshakes would take half of the time.
func serve(h http.Handler, http2 bool) (base *http.Transport, stop func()) {
	l := pacetest.Listen()
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}, EnableHTTP2: http2}
	base = &http.Transport{MaxIdleConnsPerHost: 1000, DialContext: l.DialContext}
	if http2 {
		s.StartTLS()
		roots := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
		base.TLSClientConfig = &tls.Config{RootCAs: roots, ServerName: "example.com"} // as the certificate says
		base.ForceAttemptHTTP2 = true
	} else {
		s.Start()
		base.DialTLSContext = l.DialContext
	}
	return base, func() {
		base.CloseIdleConnections()
		s.Close()
	}
}
