package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// What the server allows.
const (
	callsPerSecond = 50
	burst          = 10
)

// A server allows callsPerSecond with a burst, answers anything else with 429 and
// Retry-After: 1, and does not charge for that. Its judge is not pace but
// golang.org/x/time/rate.
type server struct {
	*httptest.Server
	headers bool          // RateLimit-Policy and RateLimit, as the draft has them
	jitter  time.Duration // of the network, each way: uniform from 0 to this

	mu      sync.Mutex
	bucket  *rate.Limiter
	seen    int // calls
	refused int
	opened  int // connections
}

func newServer(headers bool, jitter time.Duration) *server {
	s := &server{headers: headers, jitter: jitter, bucket: rate.NewLimiter(callsPerSecond, burst)}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.mu.Lock()
			s.opened++
			s.mu.Unlock()
		}
	}
	s.Start()
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.delay()
	defer s.delay()
	s.mu.Lock()
	now := time.Now()
	allowed := s.bucket.AllowN(now, 1)
	left := s.bucket.TokensAt(now)
	s.seen++
	if !allowed {
		s.refused++
	}
	s.mu.Unlock()
	if s.headers {
		const t = 1 // what may be used in the next second includes what comes in meanwhile
		w.Header().Set("RateLimit-Policy", fmt.Sprintf(`"default";q=%d;w=1`, callsPerSecond))
		w.Header().Set("RateLimit", fmt.Sprintf(`"default";r=%d;t=%d`, int(math.Max(0, left+callsPerSecond*t)), t))
	}
	if !allowed {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests", http.StatusTooManyRequests)
		return
	}
	io.WriteString(w, "done\n")
}

func (s *server) delay() {
	if s.jitter > 0 {
		time.Sleep(rand.N(s.jitter))
	}
}

// count returns how many calls were seen and refused, over how many connections.
func (s *server) count() (seen, refused, opened int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen, s.refused, s.opened
}
