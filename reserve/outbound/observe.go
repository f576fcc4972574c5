package outbound

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/adapt"
	"github.com/nextfree/pace/reserve/internal/hooks"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// engine is how this package stops limiters.
var engine = hooks.Open[*reserve.Policy, *reserve.Limiter, *reserve.Reservation]()

// A ruling is what follows from a response for its request.
type ruling struct {
	refused bool
	again   bool      // it may be sent again
	resume  time.Time // not before; zero: its limit has been stopped, and it need not wait by itself
}

const (
	// Without a word from the server, a request waits for so long after its first refusal, and
	// twice as long after each further one, unless others of its keys were accepted meanwhile.
	firstBackoff = time.Second
	lastBackoff  = time.Minute
)

// observe does what the server says in a response: it stops limits, changes their rates,
// and settles the costs.
func (t *Transport) observe(c *call, r *http.Response, attempt int) (next ruling) {
	now := t.now()
	s := reply.Read(r, now, t.dialects)
	if s.Cached {
		c.fail() // it says nothing, even if all is well
		t.settle(c, r, false)
		return ruling{}
	}
	c.reason = s.Reason
	about := make([]*reply.Limit, len(c.asks)) // what it says of each
	for i := range s.Limits {
		if a := c.target(s.Limits[i].Name); a >= 0 {
			about[a] = &s.Limits[i]
		}
	}
	next.refused = s.Refused
	if !s.Refused {
		t.accepts(c, now)
	}
	var wanted time.Duration
	if s.Refused {
		wanted = t.refusal(c, &s, about, now, attempt, &next)
	}
	t.settle(c, r, s.Refused)
	if s.Refused {
		if len(c.asks) == 0 {
			t.hooks.throttled(r, "", wanted)
		}
		for i := range c.asks {
			if c.blamed(i, about) {
				t.hooks.throttled(r, c.asks[i].limit.name, wanted)
			}
		}
	}
	for i := range c.asks {
		t.adapt(c, i, about, &s, now, next)
	}
	if !s.Refused && (r.StatusCode < 300 || r.StatusCode >= 400) { // not before a redirect is followed
		t.warning(c, about, now)
	}
	return next
}

// refusal stops what a refusal stops, and returns for how long the server wants that.
func (t *Transport) refusal(
	c *call, s *reply.Reply, about []*reply.Limit, now time.Time, attempt int, next *ruling,
) time.Duration {
	wanted, told := s.After, s.Told && s.After > 0
	if !s.Told {
		for i, l := range about {
			if l != nil && !c.asks[i].limit.exact {
				wanted = max(wanted, l.Stop, l.Wants(float64(c.asks[i].cost)))
			}
		}
		told = wanted > 0
	}
	next.again = attempt <= t.retries && !s.Final && wanted <= t.maxRetryAfter
	if !told {
		if c.refusals++; t.acceptedSince(c) {
			c.refusals = 1
		}
		wanted = min(firstBackoff<<min(c.refusals-1, 6), lastBackoff)
		t.ease(c, about, now)
		next.resume = now.Add(wanted)
		return wanted
	}
	until := now.Add(min(wanted, t.maxRetryAfter))
	t.ease(c, about, until)
	if t.pauseRefused {
		next.resume = until
		return wanted
	}
	for i := range c.asks {
		if c.blamed(i, about) {
			t.stop(&c.asks[i], until)
		}
	}
	return wanted
}

// ease has the limits that a refusal blames eased, after a stop that ends at resume.
func (t *Transport) ease(c *call, about []*reply.Limit, resume time.Time) {
	for i := range c.asks {
		if c.asks[i].rate == nil && c.blamed(i, about) {
			t.eases.begin(&c.asks[i], resume)
		}
	}
}

// accepts takes note of when a call with these keys was accepted.
func (t *Transport) accepts(c *call, now time.Time) {
	if t.retries == 0 {
		return
	}
	last, ok := t.accepted.get(c.set)
	if !ok {
		last = t.accepted.getOr(c.set, new(atomic.Int64))
	}
	last.Store(now.UnixNano())
}

// acceptedSince reports whether another call with these keys was accepted since the call began to
// wait for this attempt.
func (t *Transport) acceptedSince(c *call) bool {
	last, ok := t.accepted.get(c.set)
	return ok && last.Load() >= c.begin.UnixNano()
}

// warning stops limits of which nothing is left, before anybody is refused.
func (t *Transport) warning(c *call, about []*reply.Limit, now time.Time) {
	for i, l := range about {
		a := &c.asks[i]
		if l == nil || a.limit.exact {
			continue
		}
		if l.Stop > 0 {
			t.stop(a, now.Add(min(l.Stop, t.maxRetryAfter)))
		} else if wait := l.Wants(float64(a.cost)); wait > 0 {
			t.hold(a, now, min(wait, t.maxRetryAfter))
		}
	}
}

// stop stops a limit until a time: those who wait go later, at the same distances.
func (t *Transport) stop(a *ask, until time.Time) {
	switch by := a.by.(type) {
	case *reserve.Limiter:
		engine.Stop(by, until)
	case pausable:
		by.PauseUntil(until)
	default:
		t.gateOf(a).(pausable).PauseUntil(until)
	}
}

// hold sees to it that nothing goes for a time: what is owed anyway counts, so it stops the limit
// for the rest.
func (t *Transport) hold(a *ask, now time.Time, wait time.Duration) {
	if l, ok := a.by.(interface{ NextFree() time.Time }); ok {
		wait -= max(0, l.NextFree().Sub(now))
	}
	if wait > 0 {
		t.stop(a, now.Add(wait))
	}
}

// adapt has the rate of a limit learn from a response.
func (t *Transport) adapt(c *call, i int, about []*reply.Limit, s *reply.Reply, now time.Time, next ruling) {
	a, l := &c.asks[i], about[i]
	if a.rate == nil {
		return
	}
	from, to := a.rate.change(func(rate *adapt.Rate) {
		if l != nil && l.Rate > 0 {
			allowed := l.Rate
			if l.Name != a.limit.name || l.Name == "" { // it speaks of requests
				allowed *= rate.Cost()
			}
			rate.Said(now, c.sent, allowed)
		}
		switch {
		case s.Refused && c.blamed(i, about):
			resume := now
			if next.resume.IsZero() {
				resume = now.Add(min(s.After, t.maxRetryAfter))
			}
			rate.Refused(now, c.sent, resume)
		case s.Refused:
		case l != nil && l.Short && l.Rate == 0:
			rate.Short(now, c.sent, float64(a.cost))
		default:
			rate.Accepted(now, c.sent, float64(a.cost))
		}
	})
	if a.probe {
		a.probe = false
		a.rate.giveUp() // somebody else's turn, if it is still needed
	}
	t.hooks.rateChanged(c.request, a.limit.name, from, to)
}

// target returns which of a call's limits is meant by a name: -1, if none is.
func (c *call) target(name string) int {
	if name == "" && c.reason != "" { // it says of which limit it speaks
		for i := range c.asks {
			if c.asks[i].limit.name == c.reason {
				return i
			}
		}
	}
	for i := range c.asks {
		if c.asks[i].limit.name == name && name != "" {
			return i
		}
	}
	if name != "" && name != "requests" {
		return -1
	}
	for i := len(c.asks) - 1; i >= 0; i-- {
		if c.asks[i].limit.name == "" {
			return i
		}
	}
	if name == "" {
		return len(c.asks) - 1
	}
	return -1
}

// blamed reports whether a refusal is one by that limit: by those of which too little is left, or
// else by the one that is meant where no name is said.
func (c *call) blamed(i int, about []*reply.Limit) bool {
	any := false
	for j, l := range about {
		if l != nil && short(l, &c.asks[j]) {
			if i == j {
				return true
			}
			any = true
		}
	}
	return !any && i == c.target("")
}

// short reports whether too little is left of a limit.
func short(l *reply.Limit, a *ask) bool {
	return l.Stop > 0 || l.Short || l.Left >= 0 && l.Left < float64(a.cost)
}
