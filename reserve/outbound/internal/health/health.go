// Package health tells which of several servers should rest.
package health

import (
	"sync"
	"time"
)

// Health is how an upstream has served its calls lately. The zero value is well. An upstream that fails (a broken
// connection, 5xx, 401, 403 or 404) rests for 1 s, doubling to 60 s. After a rest one call probes it, and others keep
// away meanwhile. A request may cause its own failure, so it counts only if another upstream served that request, or if
// it is the second in a row.
type Health struct {
	mu    sync.Mutex
	inRow int       // failures; those of calls that were out together are one
	rests int       // rests in a row
	noted time.Time // the latest failure
	ends  time.Time // of the latest rest
}

const (
	firstRest = time.Second
	lastRest  = time.Minute
)

// Failed notes a failure of a call sent at that time, and returns how long the upstream rests now; 0: not, or already.
// Sure says that another upstream served the same request.
func (h *Health) Failed(sent, now time.Time, sure bool) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.inRow == 0 || sent.After(h.noted) {
		h.inRow, h.noted = h.inRow+1, now
	}
	if !sure && h.inRow < 2 || now.Before(h.ends) {
		return 0
	}
	h.rests++
	rest := h.rest()
	h.ends = now.Add(rest)
	return rest
}

// Worked notes that the upstream served a call, and reports whether that ends its rests.
func (h *Health) Worked(sent time.Time) (recovered bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.inRow == 0 || !sent.After(h.noted) {
		return false
	}
	recovered = h.rests > 0
	h.inRow, h.rests = 0, 0
	return recovered
}

// Probe returns for how long other calls keep away from an upstream to which a call goes now.
func (h *Health) Probe() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.rests == 0 {
		return 0
	}
	return h.rest()
}

func (h *Health) rest() time.Duration { return min(firstRest<<min(h.rests-1, 6), lastRest) }
