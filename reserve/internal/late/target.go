package late

import (
	"context"
	"errors"
	"iter"
	"math"
	"time"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
)

// A Target reserves for the first of a queue. The queue calls reserve while it holds binding, and all others under mu:
// they must not block.
type Target interface {
	// reserve returns a hold for a place, or a trial if it has to leave permits.
	reserve(ctx context.Context, p *Place, trial bool, maxWait time.Duration) (*hold, error)
	// better reports whether another hold would be better than the one that is bound.
	better(h *hold) bool
	// forecast returns how long p would wait behind others, if base is how long the bound hold (nil: none) has to.
	forecast(ahead iter.Seq[int], h *hold, base time.Duration, p *Place) time.Duration
	// rate is in permits per second; 0: it is not known. If the target never grants more than that, over the time from a
	// hold that has to wait, certain is the same. Otherwise it is 0.
	rate() float64
	certain() float64
	// spacing is the rate of which the grant after one that had to wait is later by a permit at least; 0: that is not
	// known.
	spacing() float64
	// paidLater reports whether the time of a hold does not depend on how many permits it is for.
	paidLater() bool
	// remote reports whether to reserve and to cancel takes a while.
	remote() bool
	// blocks reports whether to reserve may block: it is remote, or a Reserver of the user's.
	blocks() bool
	// many reports whether there is more than one limit to choose from.
	many() bool
	// watch has f called when promised times change.
	watch(f func(later bool) (keep bool))
}

// A limit is one reserver, and the target that consists of it.
type limit struct {
	by      reserve.Reserver
	limiter *reserve.Limiter   // the same, if it is one
	parts   []*reserve.Limiter // that it consists of, if that is known
	known   bool               // it consists of nothing else
	prepaid bool               // not paid later, or not known to be
	far     bool
}

// One returns the target that is one reserver.
func One(by reserve.Reserver) Target { return newLimit(by) }

func newLimit(by reserve.Reserver) *limit {
	l := &limit{by: by, known: true}
	l.limiter, _ = by.(*reserve.Limiter)
	l.look(by)
	l.prepaid = !l.known
	for _, part := range l.parts {
		one, err := part.Peek(1)
		all, err2 := part.Peek(math.MaxInt32)
		// A request for more has to wait for longer only where it is paid upfront. Time passes meanwhile.
		l.prepaid = l.prepaid || err != nil || err2 != nil || all > one
	}
	return l
}

// look finds the limiters of which a reserver consists.
func (l *limit) look(by any) {
	if one, ok := by.(*reserve.Limiter); ok {
		l.parts = append(l.parts, one)
		return
	}
	if parts := engine.PartsOf(by); parts != nil {
		for _, part := range parts {
			l.look(part)
		}
		return
	}
	l.known = false
	if _, ok := by.(interface {
		Stored(context.Context) (float64, error)
	}); ok {
		l.far = true
	}
}

func (l *limit) reserve(ctx context.Context, p *Place, trial bool, maxWait time.Duration) (*hold, error) {
	n := p.Permits
	if trial {
		n = int(saturate.Add(int64(n), int64(p.Leave)))
	}
	h := p.newHold()
	h.trial = trial
	var err error
	if l.limiter != nil { // what is handed on before it goes does not count as granted
		err = (*engine.Limiter)(l.limiter).ReserveUncounted(ctx, n, maxWait, (*engine.Reservation)(&h.r))
	} else {
		h.r, err = l.by.ReserveWithin(ctx, n, maxWait)
	}
	var size *reserve.SizeError
	if trial && errors.As(err, &size) {
		return nil, &reserve.SizeError{Permits: p.Permits, Max: max(0, size.Max-p.Leave)}
	}
	if err == nil && trial && !l.prepaid {
		h.paid = new(reserve.Reservation)
		if *h.paid, err = l.by.ReserveWithin(ctx, 1, maxWait); err != nil {
			h.r.Cancel()
		}
	}
	if err != nil {
		return nil, err
	}
	h.asked = h.delay()
	return h, nil
}

func (l *limit) better(*hold) bool { return false }
func (l *limit) many() bool        { return false }
func (l *limit) paidLater() bool   { return !l.prepaid }
func (l *limit) remote() bool      { return l.far }
func (l *limit) blocks() bool      { return !l.known }

func (l *limit) rate() float64 {
	if by, ok := l.by.(interface{ Rate() float64 }); ok {
		if r := by.Rate(); r < math.Inf(1) {
			return r
		}
	}
	return 0
}

func (l *limit) spacing() float64 { return l.rate() }

func (l *limit) certain() float64 {
	if len(l.parts) != 1 || !l.known || (*engine.Limiter)(l.parts[0]).Outlook().Window {
		return 0
	}
	return l.rate()
}

// wait returns how long a request would wait if it were made now, by what is known here.
func (l *limit) wait(n int) (longest time.Duration) {
	for _, part := range l.parts {
		d, err := part.Peek(n)
		if err != nil {
			return reserve.Forever
		}
		longest = max(longest, d)
	}
	return longest
}

func (l *limit) forecast(ahead iter.Seq[int], h *hold, base time.Duration, p *Place) time.Duration {
	if l.known {
		longest := base
		for _, part := range l.parts {
			longest = max(longest, behind(part, ahead, p.Permits+p.Leave))
		}
		return longest
	}
	sum := 0
	for n := range ahead {
		sum += n
	}
	if h != nil {
		sum += h.place.Permits
	}
	if rate := l.rate(); rate > 0 {
		base = add(base, time.Duration(float64(sum)/rate*float64(time.Second)))
	}
	return base
}

func (l *limit) watch(f func(later bool) (keep bool)) {
	for _, part := range l.parts {
		(*engine.Limiter)(part).Watch(f)
	}
}
