package reserve

import (
	"context"
	"iter"
	"time"

	"github.com/nextfree/pace/reserve/internal/hooks"
	"github.com/nextfree/pace/smooth"
)

// Packages below reserve use its unexported methods through these hooks.
func init() {
	hooks.Register(&hooks.Hooks[*Policy, *Limiter, *Reservation]{
		Terms:     func(p *Policy) *hooks.Terms { return &p.terms },
		Check:     checkState,
		New:       (*Policy).newLimiter,
		Grow:      func(p *Policy, now int64, l smooth.Ledger) *Limiter { return p.smoothLimiter(now, l) },
		Fresh:     (*Policy).fresh,
		Like:      (*Limiter).like,
		Retire:    (*Limiter).retire,
		Supersede: (*Limiter).supersede,
		Charge:    (*Limiter).charge,
		Stop:      (*Limiter).stop,
		Wait:      func(l *Limiter, permits int) (time.Duration, error) { return l.behind(nil, permits) },
		Behind:    (*Limiter).behind,

		RefuseBehind: func(ctx context.Context, l *Limiter, ahead iter.Seq[int], n int, maxWait time.Duration) error {
			return l.refuseBehind(ctx, ahead, n, maxWait)
		},

		Ledger: func(p *Policy, saved []byte, then int64, wall func(int64) time.Time) (any, error) {
			if saved == nil {
				return p.variant.Ledger(then, wall), nil
			}
			return p.variant.Load(saved, then, wall)
		},
		Kind: func(p *Policy) (pkg, limiter string) { return p.variant.Package, p.variant.Limiter },

		Outlook: (*Limiter).outlook,
		Latest:  (*Limiter).latest,
		Await:   await,
		Watch:   (*Limiter).watch,
		Parts:   func(r any) []any { return parts(r) },
		Promise: func(r *Reservation) any {
			if r.promise == nil {
				return nil
			}
			return *r.promise
		},

		ReserveUncounted: func(ctx context.Context, l *Limiter, n int, maxWait time.Duration, r *Reservation) error {
			return l.reserveUncounted(ctx, n, maxWait, r)
		},
		Count: (*Reservation).count,

		Said: (*Limiter).said,

		TakeAt:    (*Limiter).takeAt,
		ReserveAt: (*Limiter).reserveAt,
		ReadyAt:   (*Reservation).readyAt,
		SettleAt:  (*Reservation).settleAt,
		LevelAt:   (*Limiter).levelAt,
		ReplaceAt: (*Limiter).replaceAt,
	})
}

// checkState returns the error that a limiter in that state would return to ReserveWithin.
func checkState(ctx context.Context, p *Policy, state *smooth.State, n int, maxWait time.Duration) error {
	if err := check(ctx, n); err != nil {
		return err
	}
	now, deadline := p.terms.Now(), p.terms.Deadline(ctx)
	l := state.Ledger(p.terms.Curve, p.terms.Upfront)
	return p.refusal(now, l.Look(now, n), maxWait, deadline)
}

// fresh returns the state of a limiter that has had no request since begin.
func (p *Policy) fresh(begin, now int64) hooks.Fresh {
	if t := &p.terms; t.Curve != nil {
		l := smooth.New(t.Curve, begin, t.Stored, t.Upfront)
		return hooks.Fresh{Now: now, Rate: l.Rate(), Stored: l.Stored(now)}
	}
	l := p.variant.Ledger(begin, p.terms.Time)
	return hooks.Fresh{Now: now, Rate: l.Rate(), Stored: l.Stored(now)}
}

// idle is a ledger whose limiters can be like fresh ones. Idle reports whether nothing is owed and no request
// waits.
type idle interface{ Idle(now int64) bool }

// like reports whether the limiter is like a fresh one.
func (l *Limiter) like(f hooks.Fresh) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.is(f)
}

// is is like for a locked limiter. After SetPolicy its policy's clock has another epoch than its own.
func (l *Limiter) is(f hooks.Fresh) bool {
	now := l.read(f.Now + int64(l.cold.policy.terms.Epoch.Sub(l.clock.Epoch)))
	ledger, ok := l.ledger.(idle)
	// Idle first: it is quick, and what Stored takes may grow with the queue.
	return ok && ledger.Idle(now) && l.ledger.Rate() == f.Rate && l.ledger.Stored(now) == f.Stored
}

// retire invalidates the limiter if it is like a fresh one: see [hooks.Hooks].
func (l *Limiter) retire(f hooks.Fresh, charge func(permits int)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(f) {
		return false
	}
	l.ledger = retired{l.ledger, charge}
	return true
}

// supersede makes later charges go to another limiter.
func (l *Limiter) supersede(charge func(permits int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ledger = retired{l.ledger, charge}
}

// retired is the ledger of a limiter that another one may have replaced. Charges go to more.
type retired struct {
	Ledger
	more func(permits int)
}

func (r retired) Charge(_ int64, permits int) { r.more(permits) }

// charge takes permits (at least 1) that were used already. The next caller waits for them, as for
// permits that [Reservation.Settle] charges.
func (l *Limiter) charge(permits int) {
	now := l.lock()
	defer l.mu.Unlock()
	l.ledger.Charge(now, permits)
	l.granted += uint64(permits)
}

// outlook returns the limiter's outlook now, and latest the one right after the latest request.
func (l *Limiter) outlook() hooks.Outlook {
	now := l.lock()
	defer l.mu.Unlock()
	return l.outlookAt(now)
}

func (l *Limiter) latest() hooks.Outlook {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.outlookAt(l.seen)
}

// outlookAt returns the outlook at a time. The limiter must be locked.
func (l *Limiter) outlookAt(now int64) (o hooks.Outlook) {
	o.Rate, o.Wait, o.MaxWait = l.ledger.Rate(), l.waitAt(now), l.cold.policy.terms.MaxWait
	curve := l.cold.policy.terms.Curve
	if curve == nil || curve.Free() {
		o.Capacity, o.Stored = l.capacity(), l.ledger.Stored(now)
	}
	o.Window = curve == nil && o.Capacity > 0
	return o
}
