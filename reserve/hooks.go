package reserve

import (
	"context"
	"iter"
	"time"

	"github.com/nextfree/pace/reserve/internal/engine"
	"github.com/nextfree/pace/reserve/internal/hooks"
	"github.com/nextfree/pace/smooth"
)

// Package hooks goes as soon as nobody imports it.
func init() {
	hooks.Register(&hooks.Hooks[*Policy, *Limiter, *Reservation]{
		Terms: func(p *Policy) *hooks.Terms { return p.engine().Terms() },
		Check: func(ctx context.Context, p *Policy, s *smooth.State, n int, maxWait time.Duration) error {
			return p.engine().Check(ctx, s, n, maxWait)
		},
		New:       func(p *Policy, begin int64) *Limiter { return (*Limiter)(p.engine().New(begin)) },
		Grow:      func(p *Policy, now int64, l smooth.Ledger) *Limiter { return (*Limiter)(p.engine().Grow(now, l)) },
		Fresh:     func(p *Policy, begin, now int64) engine.Fresh { return p.engine().Fresh(begin, now) },
		Like:      func(l *Limiter, f engine.Fresh) bool { return l.engine().Like(f) },
		Retire:    func(l *Limiter, f engine.Fresh, charge func(int)) bool { return l.engine().Retire(f, charge) },
		Supersede: func(l *Limiter, charge func(int)) { l.engine().Supersede(charge) },
		Charge:    func(l *Limiter, n int) { l.engine().Charge(n) },
		Stop:      func(l *Limiter, t time.Time) { l.engine().Stop(t) },
		Wait:      func(l *Limiter, n int) (time.Duration, error) { return l.engine().Behind(nil, n) },
		Behind:    func(l *Limiter, a iter.Seq[int], n int) (time.Duration, error) { return l.engine().Behind(a, n) },
		RefuseBehind: func(ctx context.Context, l *Limiter, a iter.Seq[int], n int, maxWait time.Duration) error {
			return l.engine().RefuseBehind(ctx, a, n, maxWait)
		},
		ReserveUncounted: func(ctx context.Context, l *Limiter, n int, maxWait time.Duration, r *Reservation) error {
			if err := checkPermits(n); err != nil {
				return err
			}
			return l.engine().ReserveUncounted(ctx, n, maxWait, r.engine())
		},
		Count:   func(r *Reservation) { r.engine().Count() },
		Outlook: func(l *Limiter) engine.Outlook { return l.engine().Outlook() },
		Latest:  func(l *Limiter) engine.Outlook { return l.engine().Latest() },
		Await:   func(ctx context.Context, r *Reservation) (time.Duration, error) { return r.engine().Await(ctx) },
		Watch:   func(l *Limiter, f func(bool) bool) { l.engine().Watch(f) },
		Parts: func(r any) (parts []any) {
			if a, ok := r.(all); ok {
				for _, p := range a {
					parts = append(parts, p)
				}
			}
			return parts
		},
		Promise: func(r *Reservation) any {
			if p := r.engine().Promise(); p != nil {
				return p
			}
			return nil
		},
		Ledger: func(p *Policy, saved []byte, then int64, wall func(int64) time.Time) (any, error) {
			return p.engine().Ledger(saved, then, wall)
		},
		Kind: func(p *Policy) (string, string) { return p.engine().Kind() },
		Said: func(l *Limiter, left float64, end time.Time) { l.engine().Said(left, end) },
	})
}
