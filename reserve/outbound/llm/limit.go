package llm

import (
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// limit is the lower of what the user gave and what the server told.
type limit struct {
	own  atomic.Pointer[reserve.Limiter]
	size atomic.Int32 // what holds; 0: there is no limit

	// Guarded by the account's lock.
	given, told int32  // 0: not
	low         int32  // a far lower limit that the latest response told; 0: it told none
	heard       int64  // when a response told it last, in seconds since 1970
	share       *share // nil: all of it is ours
}

// limiter is nil if this process has none.
func (a *account) limiter(k kind) *reserve.Limiter { return a.limits[k].own.Load() }

func (a *account) reserver(k kind) reserve.Reserver {
	if by := a.users[k]; by != nil {
		return by
	}
	if k == calls && a.limiter(k) == nil {
		a.limits[k].own.CompareAndSwap(nil, a.of.unlimited.Limiter())
	}
	return a.limiter(k)
}

func (a *account) isActive(k kind) bool {
	return a.limits[k].size.Load() > 0 || a.users[k] != nil
}

func (a *account) give(l Limits) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for k, n := range l.list() {
		if m := &a.limits[k]; a.users[kind(k)] == nil {
			m.given = int32(min(n, math.MaxInt32))
			a.hold(kind(k))
		}
	}
}

// follow obeys a told limit. Less than half of the limit before must be told twice: a gateway may have answered.
func (a *account) follow(k kind, n int32) (first bool) {
	m := &a.limits[k]
	if a.users[k] != nil {
		return false
	}
	size := m.size.Load()
	if n < size/2 && m.low != n {
		m.low = n
		a.of.ignored.add(&a.of.ignored.Limits)
		return false
	}
	m.low, m.told, m.heard = 0, n, a.of.clock.Now().Unix()
	a.hold(k)
	return size == 0
}

// hold must be called with the account locked.
func (a *account) hold(k kind) {
	m := &a.limits[k]
	n := m.given
	if m.told > 0 && (n == 0 || m.told < n) {
		n = m.told
	}
	if m.size.Load() == n {
		return
	}
	defer m.size.Store(n) // when it has its limiter: other calls look without the lock
	if n > 0 {
		a.resize(k, n)
	} else if l := m.own.Load(); l != nil { // for the calls that wait
		_ = l.Retime(math.Inf(1))
		a.stop(l.Snapshot().PausedUntil)
	}
}

func (a *account) stop(until time.Time) {
	l := a.reserver(calls).(*reserve.Limiter)
	(*engine.Limiter)(l).Stop(until)
}

func (a *account) stopped() bool {
	l := a.limiter(calls)
	return l != nil && l.NextFree().After(a.of.clock.Now())
}

// resize lets waiting calls go earlier if the limit grows. If it shrinks, a call that has a time keeps it.
func (a *account) resize(k kind, n int32) {
	m := &a.limits[k]
	span := a.spans[k]
	if m.given > 0 {
		span = unknown
	}
	p := a.of.policy(k, int(n), span)
	l := m.own.Load()
	if l == nil {
		m.own.Store(p.Limiter())
		return
	}
	before := l.Rate()
	if l.SetPolicy(p) != nil { // it is counted otherwise
		next := p.Limiter()
		(*engine.Limiter)(next).Charge(int((*engine.Limiter)(l).Used()))
		m.own.Store(next)
		return
	}
	if rate := l.Rate(); rate > before {
		_ = l.Retime(rate)
	}
}

// heeded is the time in which package outbound reads a refusal, and stops the key.
const heeded = 500 * time.Millisecond

// kindOf returns which limit a header tells: one of requests may be a day's.
func (a *account) kindOf(h *header, s span, n int32) kind {
	is := h.kind
	if is == requests && (s > minutely || s == unknown && a.limits[dayRequests].told == n) {
		is = dayRequests
	}
	if s > minutely {
		a.spans[is] = s
	}
	return is
}

// forgetOld forgets the limits that no response has told for a day. If a limit that the server should tell is then
// unknown, one call goes first again.
func (a *account) forgetOld() {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.of.clock.Now().Add(-day).Unix()
	for k := range kinds {
		if m := &a.limits[k]; m.told > 0 && m.heard < old {
			m.told = 0
			a.hold(k)
			if !a.isKnown() {
				a.flight.shut(true)
			}
		}
	}
}

// correct charges a day's limit what others have used of it.
func (a *account) correct(k kind, left int32, reset time.Duration, c *call) {
	m := &a.limits[k]
	l := (*engine.Limiter)(m.own.Load())
	if a.spans[k] == dayPeriod && m.given == 0 {
		l.Said(float64(left), a.of.clock.Now().Add(reset))
	} else if more := int(m.size.Load()-left) - max(m.used(a.of), c.before[k]); more > 0 {
		l.Charge(more)
	}
}

func (a *account) observe(c *call, r *http.Response) {
	a.mu.Lock()
	defer a.mu.Unlock()
	told, refused := false, reply.Refuses(r.StatusCode)
	for i := range headers {
		h := &headers[i]
		n, ok := a.number(r.Header, h.limit, 1)
		if !ok {
			continue
		}
		told = true
		left, counted := a.number(r.Header, h.remaining, 0)
		span, reset := h.day(r.Header, n, left)
		kind := a.kindOf(h, span, n)
		first := a.follow(kind, n)
		switch l := a.limiter(kind); {
		case l == nil:
		case counted && left <= n && kind.isDay():
			a.correct(kind, left, reset, c)
		case first && counted:
			a.begin(kind, int(max(1, n-left)), c.price(kind))
		case first:
			(*engine.Limiter)(l).Charge(c.price(kind))
		case counted && left <= n:
			a.divide(kind, n, left, c, refused)
		}
	}
	if told || r.StatusCode < 300 {
		if refused && a.flight.closed.Load() { // until its stop is known
			a.stop(a.of.clock.Now().Add(heeded))
		}
		a.flight.shut(false)
	}
}
