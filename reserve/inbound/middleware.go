package inbound

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/nextfree/pace/internal/allornothing"
	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/internal/limit"
)

// A Middleware lets requests pass that all its tiers allow. It must not be copied. All methods may be called
// concurrently.
type Middleware struct {
	settings
	tiers     []Tier
	counts    []counters // by tier
	comebacks []comeback // by tier

	chargesAfter bool   // some tier has ChargeAfter
	policies     string // the value of RateLimit-Policy, unless some tier has a quota for each key

	queue   queue
	delayed atomic.Int64 // refusals in the tarpit now

	allowed, unauthorized, gone, everDelayed atomic.Uint64
}

type claim struct {
	which
	limit.Taken
	cost int // 0 or less: the tier is not asked
}

// New returns a middleware of at least one tier. Their names, for headers, are printable ASCII without quotes and
// backslashes, and differ. Errors are *reserve.ValueError, or wrap one.
func New(tiers []Tier, opts ...Option) (*Middleware, error) {
	m := &Middleware{
		settings:  settings{jitter: defaultJitter},
		tiers:     append([]Tier(nil), tiers...),
		counts:    make([]counters, len(tiers)),
		comebacks: make([]comeback, len(tiers)),
	}
	if len(tiers) == 0 {
		return nil, valueError("tiers", len(tiers), "at least 1")
	}
	seen, byKey := map[string]bool{}, false
	for i := range m.tiers {
		t := &m.tiers[i]
		switch {
		case t.err != nil:
			return nil, t.err
		case t.find == nil:
			return nil, valueError("a tier", nil, "one from Global or PerKey")
		case !wellNamed(t.name) || seen[t.name]:
			return nil, valueError("a tier's name", t.name,
				"printable ASCII without quotes and backslashes, and another for each tier")
		}
		seen[t.name] = true
		m.chargesAfter = m.chargesAfter || t.after != nil
		byKey = byKey || t.quotaByKey()
	}
	if err := invalid.Apply(valueError, &m.settings, opts); err != nil {
		return nil, err
	}
	m.queue.places, m.queue.byPlace = m.queuePlaces, map[place]int{}
	if !byKey {
		m.policies = m.policyField(nil)
	}
	return m, nil
}

func wellNamed(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return c < ' ' || c > '~' || c == '"' || c == '\\'
	})
}

// Handler passes to next the requests that the tiers allow. All its handlers share the tiers. It panics if next is nil.
//
// Next gets the ResponseWriter as it is, except after [WithQueue] has read a body, and with [ChargeAfter]. That wrapper
// has Flush, Hijack, ReadFrom, and Unwrap.
func (m *Middleware) Handler(next http.Handler) http.Handler {
	if next == nil {
		panic(valueError("Handler", nil, "a handler"))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serve(w, r, next) })
}

func (m *Middleware) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	var few [4]claim // on the stack, for most middlewares
	claims := few[:min(len(m.tiers), len(few))]
	if len(m.tiers) > len(few) {
		claims = make([]claim, len(m.tiers))
	}
	switch body, ok := m.admit(w, r, claims); {
	case !ok:
	case m.chargesAfter || body != nil:
		m.serveAndCharge(&responseWriter{ResponseWriter: w, body: body}, r, next, claims)
	default:
		next.ServeHTTP(w, r)
	}
}

func (m *Middleware) serveAndCharge(w *responseWriter, r *http.Request, next http.Handler, claims []claim) {
	returned := false
	defer func() {
		for i := range claims {
			if after := m.tiers[i].after; after != nil && claims[i].cost >= 1 && returned { // or next panics
				claims[i].Settle(max(0, after(r, w.response())))
			}
		}
	}()
	next.ServeHTTP(w, r)
	returned = true
}

func (m *Middleware) admit(w http.ResponseWriter, r *http.Request, claims []claim) (body *earlyBody, ok bool) {
	if m.skip != nil && m.skip(r) || !m.costs(r, claims) {
		return nil, true
	}
	ctx := r.Context()
	tier, err := m.reserve(ctx, r, claims)
	if err == nil {
		for i := range m.comebacks {
			if c := &m.comebacks[i]; c.waits.Load() {
				c.passed(m.tiers[i].interval(claims[i].cost))
			}
		}
		if m.queueWait > 0 {
			body, tier, err = m.wait(ctx, r, claims)
		}
	}
	if err == nil {
		m.allowed.Add(1)
		m.quotaFields(w.Header(), claims)
		return body, true
	}
	if done.Cause(ctx) != nil && !isRefusal(err) {
		m.gone.Add(1)
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusServiceUnavailable) // in case that the client still reads it
		return nil, false
	}
	m.refuse(w, r, claims, tier, err)
	return nil, false
}

func (m *Middleware) costs(r *http.Request, claims []claim) (any bool) {
	cost := 1
	if m.cost != nil {
		cost = m.cost(r)
	}
	for i := range claims {
		n := cost
		if own := m.tiers[i].cost; own != nil {
			n = own(r)
		}
		claims[i].cost = n
		any = any || n > 0
	}
	return any
}

func (m *Middleware) reserve(ctx context.Context, r *http.Request, claims []claim) (tier int, err error) {
	return allornothing.Reserve(len(claims), func(i int) (err error) {
		c, t := &claims[i], &m.tiers[i]
		if c.cost < 1 {
			return nil
		}
		if c.which, err = t.find(r); err == nil {
			// Nothing ends a request that doesn't wait after the last tier.
			used := i == len(claims)-1 && m.queueWait == 0 && t.after == nil
			c.Taken, err = t.take(ctx, c.which, c.cost, m.queueWait, used)
		}
		if err != nil && !m.stops(ctx, r, i, err) {
			err = nil
		}
		return err
	}, func(i int) { claims[i].Cancel() })
}

// stops counts a tier's error, and reports whether the request ends here.
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
	if _, known := unauthorized(err); known {
		if !t.dryRun {
			m.unauthorized.Add(1)
		}
		return !t.dryRun
	}
	c.failed.Add(1)
	if m.onFailure != nil {
		m.onFailure(r, &TierError{Tier: t.name, Err: err})
	}
	return !t.failOpen && !t.dryRun
}
