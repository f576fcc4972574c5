package main

import (
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/nextfree/pace/bench/internal/demo"
)

// How long the API takes to answer a call that it allows.
const fastest, slowest = 20 * time.Millisecond, 60 * time.Millisecond

// An api is a limited HTTP API. Its judge of what is too much is not pace but
// golang.org/x/time/rate, so that the demo does not measure pace by itself.
type api struct {
	mu     sync.Mutex
	bucket *rate.Limiter
	begin  time.Time
	calls  []demo.Call
}

// reset makes the API forget all calls, and fills its bucket.
func (a *api) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bucket, a.begin, a.calls = rate.NewLimiter(callsPerSecond, burst), time.Now(), nil
}

func (a *api) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if a.refuse(time.Now()) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many calls", http.StatusTooManyRequests)
		return
	}
	time.Sleep(fastest + rand.N(slowest-fastest))
	io.WriteString(w, "done\n")
}

// refuse records a call, and reports whether it is too much.
func (a *api) refuse(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	refused := !a.bucket.AllowN(now, 1)
	a.calls = append(a.calls, demo.Call{At: now.Sub(a.begin), Refused: refused})
	return refused
}

// seen returns the calls since reset.
func (a *api) seen() []demo.Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls
}
