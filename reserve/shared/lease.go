package shared

import (
	"cmp"
	"context"
	"time"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve/shared/internal/leases"
	"github.com/nextfree/pace/smooth"
)

const (
	leastLease = 20 * time.Millisecond
	mostLease  = time.Second
)

// WithLease is experimental: it may change or go in a minor version. It is for a key that is too hot for one Redis.
// Each process buys permits in advance: as many as it has lately used in d, from 20 ms to 1 s. It buys them as any
// caller does, first come, first served, and hands them to its own callers at the times that Redis promised. So
// processes get permits by what they ask for, no two at the same time, and few calls reach Redis. The longer d, the
// fewer. Default: no leases.
//
// Take 10,000/s, of which this process uses 4,000, and d = 100 ms. It asks Redis about 20 times a second for 200
// permits, before it has used up the last 200.
//
// A try that is refused is demand like any other. While more is wanted than there is, processes whose callers only try
// buy less at a time. Take four processes that together try for 40,000/s where the rate is 20,000/s. Each asks Redis
// 150 times a second. They get the same to within 2 %, and together, in any 100 ms, the rate to within 1.6 %.
//
// What it costs:
//   - Permits that a process has bought and not used go back d after their time. Those of a process that dies are
//     lost.
//   - A process uses the permits that it holds whenever its callers ask. So in any time t all processes together use at
//     most capacity + rate * t, and the permits that they held unused. These are as many as they use in d. If their
//     callers always wait for permits, nothing is held.
//   - Other processes have bought permits. So where nothing is stored, a request that would have gone at once may wait:
//     up to d, or more if they use more than the rate.
//   - PauseUntil and Resume do not concern permits that other processes hold. A process's own PauseUntil, Resume and
//     SetRate first give back all but those promised to callers.
//
// Requests for as many permits as the rate gives in d, or more, ask Redis as without leases. So does a process that
// uses less than 8 in d. Promises within a process move up when others in it give up, as in a limiter of one process.
// It is for [New]. [NewKeyed] refuses it.
func WithLease(d time.Duration) Option {
	return func(s *settings) error {
		if d < leastLease || d > mostLease {
			return valueError("WithLease", d, "20 ms to 1 s")
		}
		s.horizon = d
		return nil
	}
}

// A seller sells permits of the limiter to package leases.
type seller struct{ *Limiter }

func (s seller) Now() int64 { return s.now() }

func (s seller) Terms() (curve *smooth.Curve, upfront bool) {
	t := s.terms.Load()
	return t.curve, t.upfront
}

func (s seller) Charge(permits int) { s.charge(permits) }

func (s seller) Refund(ctx context.Context, r leases.Refund) error {
	back := refundOf(r)
	return s.do(ctx, changes(change{refund: &back}))
}

func (s seller) Buy(ctx context.Context, p *leases.Purchase) {
	r := buys(p.Permits, p.MaxWait, p.Deadline)
	r.by = p.By
	if p.Back != nil {
		back := refundOf(*p.Back)
		r.refund = &back
	}
	had := cmp.Or(p.By, never) - s.now()
	err := error(&UnavailableError{Key: s.key, Err: errAborted}) // unless the client returns
	defer func() {
		if p.Err = err; err != nil {
			s.explain(p, r, had)
		}
	}()
	switch err = s.do(ctx, r); {
	case err != nil:
	case r.granted:
		p.Granted, p.Lot = true, r.slot.lot(r.ready)
	default:
		p.Wait, p.Soonest = r.wait, s.terms.Load().soonest(r)
	}
}

// explain says in a purchase what its error means. It had so much time.
func (s seller) explain(p *leases.Purchase, r *request, had int64) {
	switch p.Err.(type) {
	case *UnavailableError:
		p.Charged = r.charged // other errors: it may be under way still
		p.Common = had >= int64(s.timeout) || !late(p.Err)
	case *ConfigError:
		p.Common = true
	}
}

// soonest returns how long a request for one permit would have waited in place of one that was refused.
func (t *terms) soonest(r *request) int64 {
	if !t.upfront {
		return r.wait
	}
	_, cost := t.curve.Price(r.seen.stored, 1)
	return int64(min(r.seen.debt+cost, longest))
}

// lot returns a slot, whose permits are ready then, as package leases has it.
func (s slot) lot(ready int64) leases.Lot {
	curve, permits := s.terms.curve, float64(s.permits)
	l := leases.Lot{
		Permits: s.permits, AtOnce: permits, Begin: ready, End: ready, Ahead: s.begin, Interval: curve.Interval,
		Sale: s,
	}
	taken, cost := curve.Price(s.stored, permits)
	if s.deferred || cost == 0 {
		return l
	}
	if l.AtOnce = 0; curve.Free() { // then stored permits are ready at once
		l.AtOnce = taken
	}
	if s.terms.upfront {
		l.Begin -= int64(min(cost, longest))
	}
	l.End = saturate.Add(l.Begin, int64(min(cost, longest)))
	return l
}

// refundOf returns a refund of the last permits that are left of a lot.
func refundOf(r leases.Refund) refund {
	s := r.Lot.Sale.(slot)
	if t := s.terms; t.upfront && !s.deferred { // what is left lies at the end
		_, cost := t.curve.Price(s.stored, float64(s.permits))
		_, left := t.curve.Price(s.stored, float64(r.Left))
		s.begin += cost - left
	}
	s.permits = r.Left
	return refund{slot: s, permits: r.Permits, lot: true}
}
