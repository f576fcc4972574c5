package llm

import (
	"math"
	"time"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/reserve"
)

// A share is this program's part of a limit that others use as well: while little is left, a rate. All give up a part
// of their own in a time, and gain the same, so all become equal (Chiu and Jain, "Analysis of the increase and decrease
// algorithms for congestion avoidance", 1989).
type share struct {
	ours    float64   // a minute
	mean    float64   // what a call costs
	crowded bool      // others use the limit, and it is scarce
	seen    time.Time // when it was
	moved   time.Time // when ours was moved
	refused time.Time
	pause   time.Duration // after that refusal
	charged int           // what others had used when the limit became known: it is charged to us
	since   time.Time     // when it was
}

const (
	// Others count if more than a hundredth of the limit is missing.
	noise = 100
	// Programs leave the part spare of the limit. With none of it left a program gives up the part yields of its own a
	// minute; with all of it, it gains the part grows of the limit.
	spare  = 0.05
	yields = 0.3
	grows  = 0.05
	// Others are gone if a call that was sent so much later shows no trace of them.
	alone = 70 * time.Second
	// A program has at least one call in this time.
	asks = 20 * time.Second
)

// look notes what is used of the limits that may be shared.
func (a *account) look(used *[calls]int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for k := range calls {
		if m := &a.limits[k]; m.share != nil && m.size.Load() > 0 {
			used[k] = m.used(a.of)
		}
	}
}

// used returns what is used of the limit, less what is charged for others.
func (m *limit) used(t *Transport) int {
	used := int((*engine.Limiter)(m.own.Load()).Used())
	if s := m.share; s != nil && s.charged > 0 {
		switch passed := t.clock.Now().Sub(s.since); {
		case passed >= time.Minute+t.margin:
			s.charged = 0
		case t.bucket > 0:
			used -= int(float64(s.charged) * max(0, 1-passed.Minutes()))
		default:
			used -= s.charged
		}
	}
	return max(0, used)
}

// begin charges what is used of a limit that has just become known.
func (a *account) begin(k kind, used, ours int) {
	m, now := &a.limits[k], a.of.clock.Now()
	(*engine.Limiter)(m.own.Load()).Charge(used)
	if used-ours > int(m.size.Load())/noise {
		m.share = &share{ours: float64(m.size.Load()), mean: float64(ours), moved: now, charged: used - ours, since: now}
	}
}

// divide learns from what is left of a limit of n. What is missing and not ours belongs to others.
func (a *account) divide(k kind, n, left int32, c *call, refused bool) {
	m, cost, now := &a.limits[k], c.price(k), a.of.clock.Now()
	size := m.size.Load()
	if k == requests && a.of.window > 0 || refused && cost > int(n) {
		return
	}
	if m.share == nil {
		m.share = &share{ours: float64(size), mean: float64(cost), moved: now}
	}
	s, used := m.share, m.used(a.of)
	s.mean += (float64(cost) - s.mean) / 16
	others := n - left - int32(max(used, c.before[k]))
	switch {
	case refused && int(left) < cost:
		s.refuse(now, c.sent, float64(used), float64(cost))
	case refused:
		s.crowded, s.seen = true, now
	case others > n/noise && s.isScarce(float64(n), float64(left), float64(used), float64(others), float64(size)):
		if !s.crowded {
			s.ours = min(s.ours, float64(n-others))
		}
		s.crowded, s.seen = true, now
	case c.sent.Sub(s.seen) > alone:
		s.crowded, s.ours = false, float64(size)
	}
	if s.crowded && !refused {
		s.pause = 0
		s.move(now, float64(n), float64(left), float64(used))
	}
	s.ours = min(max(s.ours, s.mean*float64(time.Minute/asks)), float64(size))
	a.space(now)
}

// isScarce reports whether little is left of a limit of n, or would be if all of our share were used.
func (s *share) isScarce(n, left, used, others, size float64) bool {
	return left < 2*spare*n || s.crowded && (used > s.ours/2 || s.ours < size && others+s.ours > (1-2*spare)*n)
}

// refuse leaves the others what they have. The pause doubles with each refusal in a row.
func (s *share) refuse(now, sent time.Time, used, cost float64) {
	s.ours = min(s.ours, used) - cost
	if sent.After(s.refused) {
		s.refused, s.pause = now, min(max(2*s.pause, s.distance()), 3*asks)
	}
	s.crowded, s.seen = true, now.Add(s.pause)
}

func (s *share) move(now time.Time, n, left, used float64) {
	minutes := min(now.Sub(s.moved).Minutes(), 1)
	s.moved = now
	free := left - max(0, s.ours-used) // less what is ours and was not used
	room := min(max(free/(spare*n), 0), 1)
	s.ours += minutes * (room*grows*n - (1-room)*yields*s.ours)
}

func (s *share) distance() time.Duration {
	return time.Duration(s.mean / max(s.ours, s.mean) * float64(time.Minute))
}

// space lets calls go as evenly as the smallest share says.
func (a *account) space(now time.Time) {
	rate, from := math.Inf(1), now
	for k := range calls {
		if s := a.limits[k].share; s != nil && s.crowded {
			rate = min(rate, s.ours/s.mean/time.Minute.Seconds())
			if until := s.refused.Add(s.pause); until.After(from) {
				from = until
			}
		}
	}
	a.spaced.Store(!math.IsInf(rate, 1))
	l := a.reserver(calls).(*reserve.Limiter)
	if l.Rate() != rate {
		_ = l.Retime(rate)
	}
	l.PauseUntil(from)
}
