package main

import (
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/pacetest"
)

// What the server allows.
const (
	callsPerSecond = 50
	burst          = 10
)

// A server allows callsPerSecond with a burst, and answers others with 429 and Retry-After: 1, for which it charges
// nothing.
type server struct {
	*httptest.Server
	limits *pacetest.Server
	opened atomic.Int64 // connections
}

// newServer starts a server behind a network that takes from 0 to jitter each way. With headers it sends
// RateLimit-Policy and RateLimit, as the draft has them.
func newServer(headers bool, jitter time.Duration) *server {
	delay := func() {
		if jitter > 0 {
			time.Sleep(rand.N(jitter))
		}
	}
	dialect := pacetest.RetryAfter
	if headers {
		dialect = pacetest.Draft
	}
	done := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "done\n") })
	s := &server{limits: reserve.Must(pacetest.New(pacetest.Bucket(callsPerSecond, burst),
		pacetest.WithDialect(dialect), pacetest.WithHandler(done)))}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		delay()
		defer delay()
		s.limits.ServeHTTP(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.opened.Add(1)
		}
	}
	s.Start()
	return s
}
