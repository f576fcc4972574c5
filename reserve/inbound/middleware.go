package inbound

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/allornothing"
	"github.com/nextfree/pace/reserve/internal/keyhooks"
)

// A Middleware lets requests pass that all its tiers allow. Make it with [New];
// its zero value is not usable, and it must not be copied. All methods may be
// called at the same time.
type Middleware struct {
	tiers  []Tier
	counts []counters
	lines  []line // of clients that were refused, by tier

	cost       func(*http.Request) int
	skip       func(*http.Request) bool
	answer     func(http.ResponseWriter, *http.Request, *Refusal)
	onFailure  func(*http.Request, *TierError)
	jitter     time.Duration
	quotas     bool
	xRateLimit bool
	policies   string // the value of RateLimit-Policy

	maxWait  time.Duration
	maxQueue int64
	waiting  atomic.Int64
	queued   atomic.Uint64
	gone     atomic.Uint64

	tarpit    time.Duration
	maxTarpit int64
	stuck     atomic.Int64
	delayed   atomic.Uint64
}

// New returns a middleware with the given tiers (at least one), which are asked in
// that order. Their names, which appear in headers, are printable ASCII without quotes
// and backslashes, and differ. Errors are *reserve.ValueError, or wrap one.
func New(tiers []Tier, opts ...Option) (*Middleware, error) {
	m := &Middleware{
		tiers:  append([]Tier(nil), tiers...),
		counts: make([]counters, len(tiers)),
		lines:  make([]line, len(tiers)),
		jitter: 3 * time.Second,
		quotas: true,
	}
	if len(tiers) == 0 {
		return nil, &reserve.ValueError{Package: "inbound", Name: "tiers", Value: len(tiers), Want: "at least 1"}
	}
	seen := map[string]bool{}
	for _, t := range tiers {
		switch {
		case t.err != nil:
			return nil, t.err
		case t.reserve == nil:
			return nil, &reserve.ValueError{Package: "inbound", Name: "a tier", Value: "the zero Tier",
				Want: "one from Global or PerKey"}
		case !wellNamed(t.name) || seen[t.name]:
			return nil, &reserve.ValueError{Package: "inbound", Name: "a tier's name", Value: fmt.Sprintf("%q", t.name),
				Want: "printable ASCII without quotes and backslashes, and another for each tier"}
		}
		seen[t.name] = true
	}
	for i, opt := range opts {
		err := noOption(i)
		if opt != nil {
			err = opt(m)
		}
		if err != nil {
			return nil, err
		}
	}
	m.policies = policies(m.tiers)
	return m, nil
}

func wellNamed(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return c < ' ' || c > '~' || c == '"' || c == '\\'
	})
}

// Handler returns a handler that passes to next the requests that the tiers allow. All handlers of
// a middleware share its tiers. The ResponseWriter is passed on as it is, so next can use all of
// its methods (Flush, Hijack). Handler panics if next is nil, as http.Handle does.
func (m *Middleware) Handler(next http.Handler) http.Handler {
	if next == nil {
		panic(&reserve.ValueError{Package: "inbound", Name: "Handler", Value: nil, Want: "a handler"})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.passes(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

// passes reports whether a request may go on. If not, it has been answered.
func (m *Middleware) passes(w http.ResponseWriter, r *http.Request) bool {
	if m.skip != nil && m.skip(r) {
		return true
	}
	cost := 1
	if m.cost != nil {
		cost = m.cost(r)
	}
	if cost <= 0 {
		return true
	}
	// Reservations live on the stack of most requests.
	var few [4]keyhooks.Hold
	held := few[:]
	if len(m.tiers) > len(few) {
		held = make([]keyhooks.Hold, len(m.tiers))
	}
	held = held[:len(m.tiers)]

	ctx := r.Context()
	tier, err := m.reserve(ctx, r, cost, held)
	if err == nil {
		for i := range m.lines {
			if l := &m.lines[i]; l.stands.Load() {
				l.passed(m.interval(i, cost))
			}
		}
		if m.maxWait > 0 {
			tier, err = m.wait(ctx, r, held)
		}
	}
	if err == nil {
		m.quotaHeaders(w.Header(), held)
		for i := range held {
			held[i].Keep()
		}
		return true
	}
	if done.Cause(ctx) != nil && !isRefusal(err) {
		m.gone.Add(1)
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusServiceUnavailable) // in case somebody still reads it
		return false
	}
	m.refuse(w, r, cost, tier, err)
	return false
}

// reserve reserves from every tier; or from none, and returns which one ended it and why.
func (m *Middleware) reserve(ctx context.Context, r *http.Request, cost int, held []keyhooks.Hold) (tier int, err error) {
	return allornothing.Reserve(len(held), func(i int) (err error) {
		held[i], err = m.tiers[i].reserve(ctx, r, cost, m.maxWait)
		if err != nil && !m.stops(ctx, r, i, err) {
			err = nil
		}
		return err
	}, func(i int) { held[i].Cancel() })
}

// stops counts a tier's error by its meaning, and reports whether the request ends here.
func (m *Middleware) stops(ctx context.Context, r *http.Request, i int, err error) bool {
	t, c := &m.tiers[i], &m.counts[i]
	switch {
	case errors.Is(err, ErrSkip):
		return false
	case isRefusal(err) && t.dryRun:
		c.wouldRefuse.Add(1)
		return false
	case isRefusal(err):
		c.refused.Add(1)
		return true
	case done.Cause(ctx) != nil:
		return true
	}
	c.failed.Add(1)
	if m.onFailure != nil {
		m.onFailure(r, &TierError{Tier: t.name, Err: err})
	}
	return !t.failOpen && !t.dryRun
}

// wait waits until all reservations are due. It returns which one ended it and why.
func (m *Middleware) wait(ctx context.Context, r *http.Request, held []keyhooks.Hold) (tier int, err error) {
	last, longest := allornothing.Last(len(held), func(i int) time.Duration {
		if m.tiers[i].dryRun {
			return 0
		}
		return held[i].Reservation.Delay()
	})
	if longest == 0 {
		return 0, nil
	}
	here := int64(1)
	leave := func() { m.waiting.Add(-here); here = 0 }
	defer leave()
	cancel := func(i int) {
		leave() // before giving back, which takes a while if a limiter is elsewhere
		held[i].Cancel()
	}
	if m.waiting.Add(here) > m.maxQueue {
		m.counts[last].refused.Add(1)
		allornothing.Cancel(len(held), cancel)
		return last, &queueFull{wait: longest}
	}
	m.queued.Add(1)
	readEarly(r)
	return allornothing.Wait(len(held), last, func(i int) error {
		if m.tiers[i].dryRun || held[i].Reservation.Permits() == 0 {
			return nil
		}
		// A pause of the limiter meanwhile may be too long for the request's deadline.
		if err := held[i].Reservation.Wait(ctx); err != nil && m.stops(ctx, r, i, err) {
			return err
		}
		return nil
	}, cancel)
}

// Stats count the requests that a middleware has had so far, but not those that passed at once.
type Stats struct {
	Queued  uint64 // requests that had to wait, and were let through
	Waiting int    // of those, how many are waiting now
	Gone    uint64 // requests whose client went away, or whose context ended, before they were served or answered
	Delayed uint64 // refusals that were delayed by the tarpit
	Tiers   []TierStats
}

// TierStats count the requests that one tier has had so far, by their outcome.
type TierStats struct {
	Name        string
	Refused     uint64 // requests that ended here
	WouldRefuse uint64 // requests that would have, but for DryRun
	// Shared counts, for a PerKey tier in all its middlewares, the requests of keys that shared a
	// limiter, because there was no room for them.
	Shared uint64
	Failed uint64 // requests for which the limiter or the key function failed, open or closed
}

// Stats returns the counts of the middleware so far.
func (m *Middleware) Stats() Stats {
	s := Stats{
		Queued:  m.queued.Load(),
		Waiting: int(min(m.waiting.Load(), m.maxQueue)),
		Gone:    m.gone.Load(),
		Delayed: m.delayed.Load(),
		Tiers:   make([]TierStats, len(m.tiers)),
	}
	for i := range m.tiers {
		c := &m.counts[i]
		s.Tiers[i] = TierStats{
			Name:        m.tiers[i].name,
			Refused:     c.refused.Load(),
			WouldRefuse: c.wouldRefuse.Load(),
			Failed:      c.failed.Load(),
		}
		if shared := m.tiers[i].shared; shared != nil {
			s.Tiers[i].Shared = shared()
		}
	}
	return s
}
