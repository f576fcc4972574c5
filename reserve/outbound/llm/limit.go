package llm

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
)

// A limit is one of an account's limits. It is what the user has given, or what the server has told, whichever is
// less. While others use the same quota, a part of that is ours.
type limit struct {
	own    atomic.Pointer[reserve.Limiter]
	active atomic.Bool // calls are charged

	// Guarded by the account's lock.
	given, told int32 // 0: not
	low         int32 // a far lower limit that the latest response told; 0: it told none
	size        int32 // what holds; 0: there is no limit
	window      int32 // our part of it: what the limiter has
	share       *share
}

// A share is what is ours of a limit whose responses tell what remains.
type share struct {
	ours  float64
	at    time.Time     // of the latest response
	seen  time.Time     // when others were seen
	again time.Duration // after which a call asks again whether there is room
}

// limiter returns the limiter of a kind that is in this process; nil: there is none.
func (a *account) limiter(k kind) *reserve.Limiter { return a.limits[k].own.Load() }

// reserver returns what calls wait for.
func (a *account) reserver(k kind) reserve.Reserver {
	if by := a.theirs(k); by != nil {
		return by
	}
	if k == calls && a.limiter(k) == nil {
		a.limits[k].own.CompareAndSwap(nil, a.of.unlimited.Limiter())
	}
	return a.limiter(k)
}

// theirs returns the limiter that [WithLimiters] gave; nil: none.
func (a *account) theirs(k kind) reserve.Reserver {
	if a.users == nil || k == calls {
		return nil
	}
	return a.users[k]
}

// isActive reports whether the account has a limit of a kind.
func (a *account) isActive(k kind) bool { return a.limits[k].active.Load() }

// give takes over the limits that the user gives.
func (a *account) give(l Limits) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for k, n := range l.list() {
		if m := &a.limits[k]; a.theirs(kind(k)) == nil {
			m.given = int32(min(n, math.MaxInt32))
			a.hold(kind(k))
		}
	}
}

// follow takes over a limit that a response has told. A limit that is less than half of what it was must be told twice
// in succession, because a gateway may have answered. It reports whether the limit was not known before.
func (a *account) follow(k kind, n int32) (first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := &a.limits[k]
	if a.theirs(k) != nil {
		return false
	}
	if n < m.size/2 && m.low != n {
		m.low = n
		a.of.ignored.add(badLimit)
		return false
	}
	first = m.size == 0
	m.low, m.told = 0, n
	a.hold(k)
	return first
}

// hold makes a limit what is given and told. The account must be locked.
func (a *account) hold(k kind) {
	m := &a.limits[k]
	n := m.given
	if m.told > 0 && (n == 0 || m.told < n) {
		n = m.told
	}
	if n == m.size {
		return
	}
	m.size = n
	if m.share != nil {
		m.share.ours = float64(n)
	}
	if n > 0 {
		a.resize(k, n)
	} else if l := m.own.Load(); l != nil { // for the calls that wait
		_ = l.Retime(math.Inf(1))
		m.window = 0
	}
	m.active.Store(n > 0)
}

// resize gives the limiter of a kind another size. If that is larger, calls that wait go earlier. If it is smaller, a
// call that has a time keeps it.
func (a *account) resize(k kind, n int32) {
	m := &a.limits[k]
	p, rate := a.of.policy(k, n)
	l, before := m.own.Load(), m.window
	m.window = n
	if l == nil {
		l = p.Limiter()
		if changed := a.of.changed; changed != nil {
			(*engine.Limiter)(l).Watch(func(bool) bool {
				changed()
				return true
			})
		}
		m.own.Store(l)
		return
	}
	bucket := a.of.hasBucket(k)
	if bucket && n > before {
		_ = l.Retime(rate)
	}
	_ = l.SetPolicy(p) // of the same kind
	if !bucket && n > before {
		_ = l.Retime(rate)
	}
}

// look notes how much is used of the limits of which responses tell what remains.
func (a *account) look(used *[calls]int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for k := range calls {
		if m := &a.limits[k]; m.share != nil && m.size > 0 {
			used[k] = m.used()
		}
	}
}

// used returns how much of a limit is used, calls that are out included.
func (m *limit) used() int {
	s := m.own.Load().Snapshot()
	return int(s.Capacity - s.Level)
}

const (
	// Others are believed in if more is missing than a hundredth of the limit: a server counts a little otherwise.
	noise = 100
	// While others use the quota and nothing of it remains, a client gives up yields of its share in a minute. While
	// something remains it takes that, up to grows of the whole limit in a minute. So clients that want more than there
	// is come to grows/yields of the limit: to a third, or to equal shares where they are more.
	yields = 0.15
	grows  = 0.05
	// A client that has next to nothing asks again after so long, and twice as long after each refusal.
	regrowth = 10 * time.Second
)

// divide finds out, from what a response says remains of a limit of n, what others use of it.
//
// What is missing, and not our own, is theirs. Then our share is what we use, and what remains of the limit is won
// slowly and given up slowly, as a rate that is found. So clients that begin together keep equal shares.
func (a *account) divide(k kind, n, left int32, c *call, refused bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := &a.limits[k]
	if a.theirs(k) != nil || m.size == 0 || k == requests && a.of.window > 0 {
		return
	}
	if m.share == nil {
		m.share = &share{ours: float64(m.size), at: a.of.now()}
	}
	if a.of.hasBucket(k) {
		if d := int(a.limiter(k).Snapshot().Level) - int(left); d > int(n)/noise {
			(*engine.Limiter)(a.limiter(k)).Charge(d)
		}
		return
	}
	s, now, cost := m.share, a.of.now(), c.price(k)
	if refused && cost > int(n) { // it would be refused whenever it came
		return
	}
	since := min(now.Sub(s.at), time.Minute)
	s.at = now
	used, before := m.used(), c.before[k]
	if refused {
		used, before = used-cost, before-cost
	}
	free := float64(left) - float64(max(0, used-before)) - max(0, s.ours-float64(used)) // less what was sent since
	free = min(free, float64(m.size)*grows*since.Minutes())
	others := int(n)-int(left)-max(used, before) > int(n)/noise
	if others || refused {
		s.seen = now
	}
	switch {
	case refused && int(left) < cost: // what this call gives back is not ours
		s.ours = min(s.ours, float64(used+cost)) - float64(cost)
	case others:
		if int(left) < max(cost, int(n)/50) { // they want more than there is, as we do
			s.ours *= 1 - yields*since.Minutes()
		}
		s.ours += free
	case now.Sub(s.seen) > 2*time.Minute:
		s.ours = float64(m.size)
	default:
		s.ours += max(0, free)
	}
	if s.again = max(regrowth, s.again); !refused {
		s.again = regrowth
	}
	a.take(k)
	switch {
	case int(s.ours)-used >= cost:
	case refused && used < cost: // nothing of ours will come back
		(*engine.Limiter)(a.limiter(k)).Stop(now.Add(s.again))
	case used < int(n)/10:
		a.of.after(s.again, func() { a.askAgain(k, now, cost) })
	}
	if refused {
		s.again = min(2*s.again, time.Minute)
	}
}

// askAgain lets one call go to a quota that others have used up, if no response has said anything of it since.
func (a *account) askAgain(k kind, since time.Time, cost int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m := &a.limits[k]; m.share.at.Equal(since) && m.size > 0 {
		m.share.ours = max(m.share.ours, float64(m.used()+cost))
		a.take(k)
	}
}

// take gives the limiter our share. The account must be locked.
func (a *account) take(k kind) {
	m := &a.limits[k]
	m.share.ours = min(max(1, m.share.ours), float64(m.size))
	step := max(1, m.size/128) // so that policies are few
	if ours := min(max(1, (int32(m.share.ours)+step-1)/step*step), m.size); ours != m.window {
		a.resize(k, ours)
	}
}

// observe learns from a response what the limits are, and what others use of them.
func (a *account) observe(c *call, r *http.Response) {
	told := false
	for i := range headers {
		h := &headers[i]
		v := r.Header[h.limit]
		if len(v) == 0 || h.unless != "" && r.Header[h.unless] != nil {
			continue
		}
		n, ok := a.number(v[0], 1)
		if !ok {
			continue
		}
		told = true
		first := a.follow(h.kind, n)
		left, counted := int32(0), false
		if v := r.Header[h.remaining]; len(v) > 0 {
			left, counted = a.number(v[0], 0)
		}
		switch l := a.limiter(h.kind); {
		case l == nil:
		case first && counted:
			(*engine.Limiter)(l).Charge(int(max(1, n-left)))
		case first:
			(*engine.Limiter)(l).Charge(c.price(h.kind))
		case counted && left <= n:
			a.divide(h.kind, n, left, c, isRefusal(r))
		}
	}
	if told || r.StatusCode < 300 {
		a.known.Store(true)
	}
}

// number reads a header's number.
func (a *account) number(text string, least int64) (n int32, ok bool) {
	v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	switch {
	case err == nil && v <= 0 && v < least && v >= -1: // Azure's for "not known"
		return 0, false
	case err != nil || v < least || v > mostLimit:
		a.of.ignored.add(badLimit)
		return 0, false
	}
	return int32(min(v, math.MaxInt32)), true
}

const mostLimit = 1 << 40
