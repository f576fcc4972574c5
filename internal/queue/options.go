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

type choice struct {
	option int
	wait   time.Duration // someday: it is not known; reserve.Forever: the option is none
}

// someday is the wait at an option that nobody can know.
const someday = reserve.Forever - 1

// asked reports whether asking the limits tells all.
func (o *Option) asked() bool {
	return !slices.ContainsFunc(o.Limits, func(l Limit) bool { return l.blocks() })
}

// ask returns the wait at a limit that the place holds nothing at, behind what the option asks of the same limit.
func (p *Place) ask(q *Queue, now int64, option, limit int) (time.Duration, error) {
	limits := p.Options[option].Limits
	l, behind := &limits[limit], 0
	for j := range limit {
		if limits[j].same(*l) {
			behind += limits[j].permits(p)
		}
	}
	return l.wait(q, now, behind, l.permits(p))
}

// firstAt reports whether no earlier limit of the option is the same.
func (p *Place) firstAt(option, limit int) bool {
	limits := p.Options[option].Limits
	return !slices.ContainsFunc(limits[:limit], limits[limit].same)
}

// wait returns how long it is until all limits of an option have room, as far as they tell.
func (p *Place) wait(now int64, option int, h *hold) (longest time.Duration) {
	for i := range p.Options[option].Limits {
		if j := h.at(option, i); j >= 0 && (h.option == option || p.firstAt(option, i)) {
			longest = max(longest, min(h.delayAt(now, j), someday))
			continue
		}
		d, err := p.ask(p.queue, now, option, i)
		if err != nil {
			return reserve.Forever
		}
		longest = max(longest, min(d, someday))
	}
	return longest
}

// rate returns a place's permits per second at the slowest limit of an option; 0: unknown.
func (p *Place) rate(o *Option) float64 {
	slowest := math.Inf(1)
	for i := range o.Limits {
		l := &o.Limits[i]
		rate := p.queue.rateOf(l)
		switch {
		case rate > 0 && l.Permits > 0:
			slowest = min(slowest, rate*(float64(p.Permits)/float64(l.Permits)))
		case rate > 0:
			slowest = min(slowest, rate)
		case l.blocks():
			return 0
		}
	}
	if math.IsInf(slowest, 1) {
		return 0
	}
	return slowest
}

func (q *Queue) choices(p *Place, h *hold, now int64) []choice {
	all := make([]choice, len(p.Options))
	for i := range p.Options {
		if all[i] = (choice{i, reserve.Forever}); p.closed(i) {
			continue
		}
		rests := h != nil && h.other.rests(now)
		if tells := p.Options[i].asked(); h != nil && h.option == i || tells && !(rests && h.other.lose(i)) {
			all[i].wait = p.wait(now, i, h)
		} else if !tells && !rests {
			all[i].wait = max(p.wait(now, i, h), time.Duration(saturate.Add(q.options[i].known.Load(), -now)))
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

// reserve reserves at the best option; if its wait is longer than expected, at the next best too, and keeps the better.
// Old is given up only for a better one.
func (q *Queue) reserve(ctx context.Context, p *Place, old *hold, maxWait time.Duration) (best *hold, err error) {
	if len(p.Options) == 1 && old == nil && !p.closed(0) {
		h := p.newHold(0)
		return h, h.fill(ctx, maxWait)
	}
	version := q.version.Load()
	all := q.choices(p, old, q.clock.Now())
	held, errs := make([]*hold, len(all)), make([]error, len(all))
	if old != nil {
		held[old.option] = old
	}
	defer func() { giveUp(old, best, held) }()
	var failed error
	for last := -1; ; {
		o := q.choose(all, p, last, maxWait)
		last = o.option
		switch {
		case o.wait == reserve.Forever:
			if failed == nil {
				failed = q.none(p, maxWait)
			}
			return nil, failed
		case held[last] != nil:
			best = held[last]
			best.version, best.other = version, old.again(q.clock.Now(), failed != nil)
			if best == old {
				best.other.lost = lost(old, held, errs)
			}
			q.options[last].last.Store(q.served.Add(1))
			return best, nil
		case errs[last] != nil:
			return nil, errs[last]
		}
		held[last], all[last].wait, errs[last] = q.try(ctx, p, old, last, maxWait)
		if all[last].wait == reserve.Forever && failed == nil {
			failed = errs[last]
		}
	}
}

// lost returns which options were no better than what the place has.
func lost(old *hold, held []*hold, errs []error) (set uint64) {
	for i := range held {
		if i != old.option && (held[i] != nil || errs[i] != nil) {
			set |= 1 << i
		}
	}
	return set
}

func giveUp(old, best *hold, held []*hold) {
	if best != old && best != nil && old != nil {
		best.keepLent(old)
	}
	for _, h := range held {
		if h != nil && h != best {
			h.cancel(false)
		}
	}
}

const (
	soonest = time.Second // an option that returned an error is asked again after
	latest  = time.Minute
)

// again returns when the place of a hold, nil if it had none, asks others again.
func (h *hold) again(now int64, failed bool) *retry {
	r := &retry{rest: soon}
	if h != nil && h.other != nil {
		r.rest = min(2*h.other.rest, latest)
	}
	if failed {
		r.rest = max(r.rest, soonest)
	}
	r.due, r.at = failed, add(now, r.rest)
	return r
}

func (r *retry) rests(now int64) bool { return r != nil && now < r.at }

func (r *retry) lose(option int) bool { return r.lost>>option&1 != 0 }

// try reserves at an option, and returns the wait there; reserve.Forever: it can't serve the place.
func (q *Queue) try(
	ctx context.Context, p *Place, old *hold, option int, maxWait time.Duration,
) (*hold, time.Duration, error) {
	h := p.newHold(option)
	h.borrow(old)
	err := h.fill(ctx, maxWait)
	now := q.clock.Now()
	if err == nil {
		_, wait := h.latest(now)
		wait = min(wait, someday)
		q.options[option].known.Store(add(now, wait))
		return h, wait, nil
	}
	var late *reserve.WaitError
	if !errors.As(err, &late) { // it is no answer
		q.options[option].known.Store(0)
		return nil, reserve.Forever, err
	}
	q.options[option].known.Store(add(now, late.Wait))
	if late.Wait <= maxWait { // the limit's own longest wait refuses it
		return nil, reserve.Forever, err
	}
	return nil, late.Wait, err
}

func (q *Queue) none(p *Place, maxWait time.Duration) error {
	if err := p.fits(); err != nil {
		return err
	}
	return &reserve.WaitError{Wait: reserve.Forever, MaxWait: maxWait}
}

// better reports whether another option is better. Options that can't tell are asked after a change or an error.
func (q *Queue) better(h *hold) bool {
	p, version, delay := h.place, q.version.Load(), h.delay()
	if len(p.Options) == 1 {
		return false
	}
	if h.version != version || delay > h.asked {
		h.other.due = true
	} else if !h.other.due || q.seen < h.other.at {
		return false
	}
	h.version, h.asked = version, max(h.asked, delay)
	h.other.due = q.seen < h.other.at && (!p.told() || h.other.lost != 0)
	o := q.choose(q.choices(p, h, q.seen), p, h.option, reserve.Forever)
	return o.option >= 0 && o.option != h.option && o.wait < reserve.Forever
}

func (p *Place) told() bool {
	return !slices.ContainsFunc(p.Options, func(o Option) bool { return !o.asked() })
}
