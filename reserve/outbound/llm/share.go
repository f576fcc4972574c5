package llm

import (
	"time"

	"github.com/nextfree/pace/reserve/internal/engine"
)

type share struct {
	ours    float64
	window  int32         // what the limiter has of it
	at      time.Time     // of the latest response
	grown   time.Time     // what it gains by then it has gained
	yielded time.Time     // when it yielded
	seen    time.Time     // when others were seen
	again   time.Duration // after which a call asks again whether there is room
}

func (a *account) look(used *[calls]int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for k := range calls {
		if m := &a.limits[k]; m.share != nil && m.size.Load() > 0 {
			used[k] = m.used()
		}
	}
}

func (m *limit) used() int { return int((*engine.Limiter)(m.own.Load()).Used()) }

const (
	// Others count if more than a hundredth of the limit is missing: servers count slightly differently.
	noise = 100
	// With nothing left, a client yields this part of its share a minute. Otherwise it gains grows of the limit.
	yields = 0.15
	grows  = 0.05
	// A client with next to nothing asks again after regrowth, doubled after each refusal.
	regrowth = 10 * time.Second
)

// divide splits a limit of n. What is missing and not ours belongs to others.
func (a *account) divide(k kind, n, left int32, c *call, refused bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m, cost := &a.limits[k], c.price(k)
	switch size := m.size.Load(); {
	case a.theirs(k) != nil || size == 0 || k == requests && a.of.window > 0:
		return
	case m.share == nil:
		now := a.of.clock.Now()
		m.share = &share{ours: float64(size), window: size, at: now, grown: now, yielded: now}
	}
	if refused && cost > int(n) { // it would be refused whenever it came
		return
	}
	used, before := m.used(), c.before[k]
	if refused {
		used, before = used-cost, before-cost
	}
	told := telling{now: a.of.clock.Now(), n: int(n), left: int(left), cost: cost, used: used, before: before, refused: refused}
	m.share.learn(told, float64(m.size.Load()))
	a.take(k)
	a.waitForRoom(k, told)
}

type telling struct {
	now          time.Time
	n, left      int
	cost         int // of the call
	used, before int // now, and when the call went
	refused      bool
}

func (s *share) learn(t telling, size float64) {
	s.at = t.now
	free := float64(t.left-max(0, t.used-t.before)) - max(0, s.ours-float64(t.used)) // less what was sent since
	if gain := minute(t.now.Sub(s.grown)) * size * grows; free > 0 {
		free = min(free, gain)
		s.grown = t.now.Add(-time.Duration((gain - free) / (size * grows) * float64(time.Minute)))
	}
	others := t.n-t.left-max(t.used, t.before) > t.n/noise
	if others || t.refused {
		s.seen = t.now
	}
	switch {
	case t.refused && t.left < t.cost: // what this call gives back is not ours
		s.ours = min(s.ours, float64(t.used+t.cost)) - float64(t.cost)
	case others:
		if t.left < max(t.cost, t.n/50) { // they want more than there is, as we do
			s.ours *= 1 - yields*minute(t.now.Sub(s.yielded))
			s.yielded = t.now
		}
		s.ours += free
	case t.now.Sub(s.seen) > 70*time.Second:
		s.ours = size
	default:
		s.ours += max(0, free)
	}
}

// minute returns which part of a minute has passed. At the end of a burst, not at its first response, a program sees that
// the limit is full, so what it yields and gains by time is counted apart.
func minute(since time.Duration) float64 { return min(since.Minutes(), 1) }

// waitForRoom makes a call ask again later if no response will tell of room.
func (a *account) waitForRoom(k kind, t telling) {
	s := a.limits[k].share
	if s.again = max(regrowth, s.again); !t.refused {
		s.again = regrowth
	}
	switch {
	case int(s.ours)-t.used >= t.cost:
	case t.refused && t.used < t.cost: // nothing of ours will come back
		(*engine.Limiter)(a.limiter(k)).Stop(t.now.Add(s.again))
	case t.used < t.n/10:
		a.of.clock.AfterFunc(s.again, func() { a.askAgain(k, t.now, t.cost) })
	}
	if t.refused {
		s.again = min(2*s.again, time.Minute)
	}
}

// askAgain lets one call go, unless a response has told something since.
func (a *account) askAgain(k kind, since time.Time, cost int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m := &a.limits[k]; m.share.at.Equal(since) && m.size.Load() > 0 {
		m.share.ours = max(m.share.ours, float64(m.used()+cost))
		a.take(k)
	}
}

// take must be called with the account locked.
func (a *account) take(k kind) {
	m := &a.limits[k]
	m.share.ours = min(max(1, m.share.ours), float64(m.size.Load()))
	size := m.size.Load()
	step := max(1, size/128) // so that policies are few
	if ours := min(max(1, (int32(m.share.ours)+step-1)/step*step), size); ours != m.share.window {
		a.resize(k, ours)
	}
}
