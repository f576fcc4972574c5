package outbound

import (
	"net/http"
	"sync"
	"time"
)

// health is how an upstream has served its calls lately. An upstream that fails rests: for a second, and twice as long
// after each further failure, up to a minute. After a rest one call probes it, and the others keep away until that has
// an answer.
//
// A failure is a broken connection, 5xx, 401, 403 or 404. It may be the request's own: so it counts against the upstream
// only if another one has served the same request, or if it is the second in a row.
type health struct {
	mu    sync.Mutex
	inRow int       // failures since it served a call; those of calls that were out together are one
	rests int       // rests in a row
	noted time.Time // the latest failure
	ends  time.Time // of the latest rest
}

const (
	firstRest = time.Second
	lastRest  = time.Minute
)

// failed notes a failure of a call that was sent at that time, and returns for how long the upstream rests now; 0: it
// does not, or does so already. Sure says that another upstream has served the same request.
func (h *health) failed(sent, now time.Time, sure bool) time.Duration {
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

// worked notes that the upstream has served a call that was sent at that time, and reports whether that ends its rests.
func (h *health) worked(sent time.Time) (recovered bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.inRow == 0 || !sent.After(h.noted) {
		return false
	}
	recovered = h.rests > 0
	h.inRow, h.rests = 0, 0
	return recovered
}

// probe returns for how long other calls keep away from an upstream to which a call goes now; 0: they need not.
func (h *health) probe() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.rests == 0 {
		return 0
	}
	return h.rest()
}

func (h *health) rest() time.Duration { return min(firstRest<<min(h.rests-1, 6), lastRest) }

// An outcome is what an attempt says of its upstream.
type outcome int

const (
	unknown outcome = iota // nothing
	healthy
	broken
)

// outcomeOf returns what an attempt's response, or its error, says of its upstream.
func (c *call) outcomeOf(v *verdict, err error) outcome {
	switch {
	case err != nil && c.ctx.Err() != nil: // the caller has given up
		return unknown
	case err != nil:
		return broken
	case v.refused && (v.stop > 0 || c.response.StatusCode < 500):
		return unknown
	}
	switch status := c.response.StatusCode; {
	case status >= 500, status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound:
		return broken
	}
	return healthy
}

// judge notes how the upstream of an attempt has served it, and whether others have failed to.
func (c *call) judge(of outcome) {
	u, now := c.t.upstreams, c.t.now()
	switch of {
	case broken:
		c.failedAt = append(c.failedAt, failedAt{c.member, c.sent})
		u.rests(c.member, now, c.upstream.health.failed(c.sent, now, false))
	case healthy:
		if c.upstream.health.worked(c.sent) {
			c.upstream.pause.Resume()
		}
		for _, f := range c.failedAt {
			u.rests(f.member, now, u.all[f.member].health.failed(f.sent, now, true))
		}
		c.failedAt = nil
	}
}

// failedAt is an attempt of a call that has failed at a member.
type failedAt struct {
	member int
	sent   time.Time
}

// rests keeps calls away from a member.
func (u *upstreams) rests(member int, now time.Time, rest time.Duration) {
	if rest > 0 && len(u.all) > 1 {
		u.all[member].pause.PauseUntil(now.Add(rest))
	}
}

// another has a call that its upstream has refused, or failed to serve, go to another one, and reports whether it does.
func (c *call) another(v *verdict, err error) bool {
	if c.upstream == nil {
		return false
	}
	of := c.outcomeOf(v, err)
	c.judge(of)
	if !v.refused && !(of == broken && c.harmless(err)) {
		return false
	}
	c.refusedBy[c.member] = true
	for _, refused := range c.refusedBy {
		if !refused {
			return c.again(0)
		}
	}
	clear(c.refusedBy) // a retry may go to any
	return false
}

// harmless reports whether a call that an upstream has failed to serve may go to another one: no answer came, or the
// answer says that the request was not carried out, or it does no harm to carry it out twice.
func (c *call) harmless(err error) bool {
	return err != nil || c.response.StatusCode < 500 || c.attempt.repeatable || c.t.repeatAny
}
