package queue

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
)

// A choice is an option, and a place's wait there.
type choice struct {
	option int
	wait   time.Duration // someday: it is not known; reserve.Forever: the option is none
}

// someday is the wait at an option that nobody can know.
const someday = reserve.Forever - 1

// asked reports whether asking the limits tells all.
func (o *Option) asked() bool {
	for i := range o.Limits {
		if kindOf(o.Limits[i].By).blocks() {
			return false
		}
	}
	return true
}

// wait returns how long it is until all limits of an option have room, as far as they tell. The place may have a hold.
func (p *Place) wait(option int, h *hold) (longest time.Duration) {
	limits := p.Options[option].Limits
	for i := range limits {
		if j := h.at(option, i); j >= 0 {
			longest = max(longest, min(h.delayOf(j), someday))
			continue
		}
		d, err := limits[i].wait(p.queue, limits[i].permits(p))
		if err != nil {
			return reserve.Forever
		}
		longest = max(longest, min(d, someday))
	}
	return longest
}

// rate returns a place's (nil: the limits') permits per second at the slowest limit; 0: unknown.
func (o *Option) rate(p *Place) float64 {
	slowest := math.Inf(1)
	for i := range o.Limits {
		l := &o.Limits[i]
		rate := l.rate()
		if rate == 0 && kindOf(l.By) != inFlight && kindOf(l.By) != local {
			return 0
		}
		if rate > 0 && p != nil && l.Permits > 0 {
			rate *= float64(p.Permits) / float64(l.Permits)
		}
		if rate > 0 {
			slowest = min(slowest, rate)
		}
	}
	if math.IsInf(slowest, 1) {
		return 0
	}
	return slowest
}

func (q *Queue) choices(p *Place, h *hold) []choice {
	all := make([]choice, len(p.Options))
	now := q.clock.Now()
	for i := range p.Options {
		if all[i] = (choice{i, reserve.Forever}); p.Except != nil && p.Except(i) {
			continue
		}
		if all[i].wait = p.wait(i, h); (h == nil || h.option != i) && !p.Options[i].asked() {
			all[i].wait = max(all[i].wait, time.Duration(saturate.Add(q.options[i].known.Load(), -now)))
		}
	}
	return all
}

// choose returns the best choice within maxWait, or else the earliest. Current wins a tie.
func (q *Queue) choose(all []choice, p *Place, current int, maxWait time.Duration) choice {
	earliest := slices.MinFunc(all, byWait).wait
	limit := max(earliest, min(add(earliest, q.set.Detour), maxWait))
	if q.set.Prefers != nil {
		if i := q.set.Prefers(p); i >= 0 && all[i].wait <= limit && all[i].wait < reserve.Forever {
			return all[i]
		}
	}
	best := choice{option: -1}
	for _, o := range all {
		if o.wait <= limit && (best.option < 0 || q.before(p, o, best, current)) {
			best = o
		}
	}
	return best
}

func byWait(a, b choice) int { return cmp.Compare(a.wait, b.wait) }

func (q *Queue) before(p *Place, a, b choice, current int) bool {
	x, y := p.Options[a.option].Tier, p.Options[b.option].Tier
	switch {
	case x != y:
		return x < y
	case a.wait != b.wait:
		return a.wait < b.wait
	case b.option == current || a.option == current:
		return a.option == current
	default:
		return q.options[a.option].last.Load() < q.options[b.option].last.Load()
	}
}

// reserve reserves at the best option. If its wait is longer than was expected, it reserves at the next best too, and
// keeps the better.
func (q *Queue) reserve(ctx context.Context, p *Place, maxWait time.Duration) (best *hold, err error) {
	if len(p.Options) == 1 {
		h := p.newHold(0)
		return h, h.fill(ctx, maxWait)
	}
	epoch := q.epoch.Load()
	all := q.choices(p, nil)
	held, errs := make([]*hold, len(all)), make([]error, len(all))
	defer func() {
		for _, h := range held {
			if h != nil && h != best {
				h.cancel()
			}
		}
	}()
	for last := -1; ; {
		o := q.choose(all, p, last, maxWait)
		last = o.option
		switch {
		case held[last] != nil:
			best = held[last]
			best.epoch = epoch
			q.options[last].last.Store(q.served.Add(1))
			return best, nil
		case errs[last] != nil:
			return nil, errs[last]
		case o.wait == reserve.Forever:
			return nil, q.none(p, maxWait)
		}
		held[last], all[last].wait, errs[last] = q.try(ctx, p, last, maxWait)
	}
}

// try reserves at an option, and returns the wait there.
func (q *Queue) try(ctx context.Context, p *Place, option int, maxWait time.Duration) (*hold, time.Duration, error) {
	h := p.newHold(option)
	wait := reserve.Forever
	err := h.fill(ctx, maxWait)
	var late *reserve.WaitError
	if err == nil {
		wait = min(h.delay(), someday)
	} else if h = nil; errors.As(err, &late) {
		wait = late.Wait
	}
	q.options[option].known.Store(add(q.clock.Now(), wait))
	return h, wait, err
}

func (q *Queue) none(p *Place, maxWait time.Duration) error {
	if err := p.fits(); err != nil {
		return err
	}
	return &reserve.WaitError{Wait: reserve.Forever, MaxWait: maxWait}
}

// better reports whether another option is better. One that can't tell is asked only if h became later.
func (q *Queue) better(h *hold) bool {
	p := h.place
	epoch := q.epoch.Load()
	if len(p.Options) == 1 || h.epoch == epoch && h.delay() <= h.asked {
		return false
	}
	later := h.delay() > h.asked
	h.epoch, h.asked = epoch, max(h.asked, h.delay())
	all := q.choices(p, h)
	for i := range p.Options {
		if i != h.option && !p.Options[i].asked() && !later {
			all[i].wait = reserve.Forever
		}
	}
	o := q.choose(all, p, h.option, reserve.Forever)
	return o.option >= 0 && o.option != h.option && o.wait < reserve.Forever
}
