package late

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
	"github.com/nextfree/pace/smooth"
)

// A Member is one of the limits of Earliest.
type Member struct {
	By   reserve.Reserver
	Tier int
}

// An Earliest is a target of several limits: a place is bound to the one that grants its permits earliest.
type Earliest struct {
	members []*member
	slack   time.Duration
	served  atomic.Uint64
	far     bool
	slow    bool // one of them may block
	upfront bool
	// Prefers returns the member that a place would like best, or -1, and Chosen says which one it got. They may be nil.
	// They must not block.
	Prefers func(p *Place) int
	Chosen  func(p *Place, member int)
}

// A member is a limit, and a pause of its own.
type member struct {
	*limit
	tier    int
	pause   *reserve.Limiter // without a limit, but it can be paused
	dropped atomic.Bool
	last    uint64 // when it was chosen last
	// known is when it grants permits at the earliest, by the last answer: a reading of the real clock. It counts if the
	// member can't be asked without taking any.
	known atomic.Int64
}

// NewEarliest returns the target of these members. A member of a lower tier, or the one that a place prefers, is chosen
// if that costs at most the slack.
func NewEarliest(members []Member, slack time.Duration, clock clockwork.Clock) *Earliest {
	e := &Earliest{slack: slack}
	for _, m := range members {
		one := &member{limit: newLimit(m.By), tier: m.Tier, pause: unlimited(clock)}
		e.far = e.far || one.far
		e.slow = e.slow || one.blocks()
		e.upfront = e.upfront || one.prepaid
		e.members = append(e.members, one)
	}
	return e
}

// unlimited returns a limiter that grants everything at once, unless it is paused.
func unlimited(clock clockwork.Clock) *reserve.Limiter {
	var opts []reserve.Option
	if clock != nil {
		opts = append(opts, reserve.WithClock(clock))
	}
	variant := reserve.Variant{Package: "late", Limiter: "a pause", Curve: evenly}
	return reserve.Must(reserve.NewPolicy(variant, math.Inf(1), opts...)).Limiter()
}

// evenly is the curve of a limiter that saves nothing.
func evenly(permitsPerSecond float64) *smooth.Curve {
	return &smooth.Curve{Rate: permitsPerSecond, Interval: smooth.Interval(permitsPerSecond), AtRate: evenly}
}

// PauseUntil stops a member until a time, Drop for good, and Resume ends both.
func (e *Earliest) PauseUntil(member int, t time.Time) { e.members[member].pause.PauseUntil(t) }
func (e *Earliest) Drop(member int)                    { e.members[member].dropped.Store(true) }
func (e *Earliest) Resume(member int) {
	e.members[member].dropped.Store(false)
	e.members[member].pause.Resume()
}

// An option is a member, and how long a place would wait there.
type option struct {
	member int
	wait   time.Duration
}

// options returns how long a place would wait at each member. A place that is bound has its hold.
func (e *Earliest) options(p *Place, h *hold) []option {
	all := make([]option, len(e.members))
	for i, m := range e.members {
		if all[i] = (option{i, reserve.Forever}); p.Except != nil && p.Except(i) {
			continue
		}
		all[i].wait = m.waits(p.Permits)
		if h != nil && h.member == i && !m.dropped.Load() {
			all[i].wait = h.delay()
			if d, err := m.pause.Peek(1); err == nil {
				all[i].wait = max(all[i].wait, d)
			}
		}
	}
	return all
}

// waits returns how long permits would have to be waited for, by what is known.
func (m *member) waits(n int) time.Duration {
	d, err := m.pause.Peek(1)
	if err != nil || m.dropped.Load() {
		return reserve.Forever
	}
	if m.limit.known {
		return max(d, m.wait(n))
	}
	return max(d, time.Duration(m.known.Load()-time.Now().UnixNano()), 0)
}

// choose returns which of the options is best for a place, within its longest wait. Current is taken if no other is
// better; -1: none is.
func (e *Earliest) choose(all []option, p *Place, current int, maxWait time.Duration) option {
	earliest := slices.MinFunc(all, func(a, b option) int { return int(min(max(a.wait-b.wait, -1), 1)) }).wait
	limit := max(earliest, min(add(earliest, e.slack), maxWait))
	if e.Prefers != nil {
		if i := e.Prefers(p); i >= 0 && all[i].wait <= limit && all[i].wait < reserve.Forever {
			return all[i]
		}
	}
	best := option{member: -1}
	for _, o := range all {
		if o.wait > limit {
			continue
		}
		if best.member < 0 || e.before(o, best, current) {
			best = o
		}
	}
	return best
}

// before reports whether a is better than b.
func (e *Earliest) before(a, b option, current int) bool {
	x, y := e.members[a.member], e.members[b.member]
	switch {
	case x.tier != y.tier:
		return x.tier < y.tier
	case a.wait != b.wait:
		return a.wait < b.wait
	case b.member == current || a.member == current:
		return a.member == current
	default:
		return x.last < y.last
	}
}

// reserve asks the best member. What is known of a member may be wrong, if it can't be asked without taking permits, or
// if others ask it as well. Then the next best one is asked, too, and the better of the two kept.
func (e *Earliest) reserve(ctx context.Context, p *Place, trial bool, maxWait time.Duration) (best *hold, err error) {
	all := e.options(p, nil)
	held := make([]*hold, len(all))
	asked := make([]bool, len(all))
	defer func() {
		for _, h := range held {
			if h != nil && h != best {
				h.cancel()
			}
		}
	}()
	current := -1
	for {
		o := e.choose(all, p, current, maxWait)
		if asked[o.member] || o.wait == reserve.Forever {
			break
		}
		current = o.member
		m := e.members[current]
		asked[current] = true
		held[current], err = m.ask(ctx, p, trial, maxWait)
		if err != nil {
			held[current] = nil
		}
		all[current].wait = reserve.Forever
		var wait *reserve.WaitError
		switch {
		case err == nil:
			held[current].member = current
			all[current].wait = held[current].delay()
		case errors.As(err, &wait):
			all[current].wait = wait.Wait
		}
		m.known.Store(saturate.Add(time.Now().UnixNano(), int64(all[current].wait)))
	}
	if current < 0 {
		return nil, e.refusal(p, maxWait)
	}
	for i, h := range held {
		if h == nil {
			all[i].wait = reserve.Forever
		}
	}
	if o := e.choose(all, p, current, maxWait); held[o.member] != nil {
		e.members[o.member].last = e.served.Add(1)
		if e.Chosen != nil {
			e.Chosen(p, o.member)
		}
		return held[o.member], nil
	}
	return nil, err
}

// ask reserves at a member. While that is paused it only waits for the end of the pause: a permit that is bought now
// would be forgotten by then.
func (m *member) ask(ctx context.Context, p *Place, trial bool, maxWait time.Duration) (h *hold, err error) {
	if d, err := m.pause.Peek(1); d <= 0 && err == nil {
		return m.limit.reserve(ctx, p, trial, maxWait)
	}
	h = p.newHold()
	h.trial = true
	h.r, err = m.pause.ReserveWithin(ctx, 1, maxWait)
	h.asked = h.delay()
	return h, err
}

// refusal returns the error of a place that no member ever grants.
func (e *Earliest) refusal(p *Place, maxWait time.Duration) error {
	largest := 0
	for _, m := range e.members {
		for _, part := range m.parts {
			_, err := part.Peek(p.Permits)
			var size *reserve.SizeError
			if !errors.As(err, &size) {
				return &reserve.WaitError{Wait: reserve.Forever, MaxWait: maxWait}
			}
			largest = max(largest, size.Max)
		}
	}
	return &reserve.SizeError{Permits: p.Permits, Max: largest}
}

// better reports whether the place of a hold should be bound to another member.
func (e *Earliest) better(h *hold) bool {
	all := e.options(h.place, h)
	for i, m := range e.members {
		if !m.limit.known && i != h.member && h.delay() <= h.asked {
			all[i].wait = reserve.Forever // to ask it takes permits: so only if the bound one has become later
		}
	}
	return e.choose(all, h.place, h.member, reserve.Forever).member != h.member
}

func (e *Earliest) forecast(ahead iter.Seq[int], h *hold, _ time.Duration, p *Place) time.Duration {
	sum := 0.0
	for n := range ahead {
		sum += float64(n)
	}
	all := e.options(p, nil)
	slices.SortFunc(all, func(a, b option) int { return int(min(max(a.wait-b.wait, -1), 1)) })
	// Members fill up like vessels: each grants at its rate from the end of its wait on.
	rate, granted := 0.0, 0.0
	for i, o := range all {
		if o.wait == reserve.Forever {
			break
		}
		one := e.members[o.member].rate()
		if one == 0 { // it is not known, or there is no limit
			return o.wait
		}
		rate += one
		until := reserve.Forever
		if i+1 < len(all) {
			until = all[i+1].wait
		}
		need := time.Duration(min((sum-granted)/rate*float64(time.Second), float64(math.MaxInt64/2)))
		if add(o.wait, need) <= until {
			return add(o.wait, need)
		}
		granted += rate * (until - o.wait).Seconds()
	}
	return all[0].wait
}

// Rate returns the sum of the rates; 0: one is not known.
func (e *Earliest) Rate() (sum float64) { return e.rate() }

func (e *Earliest) rate() (sum float64) {
	for _, m := range e.members {
		one := m.rate()
		if one == 0 {
			return 0
		}
		sum += one
	}
	return sum
}

func (e *Earliest) certain() float64 { return 0 }
func (e *Earliest) spacing() float64 { return 0 }
func (e *Earliest) paidLater() bool  { return !e.upfront }
func (e *Earliest) remote() bool     { return e.far }
func (e *Earliest) blocks() bool     { return e.slow }
func (e *Earliest) many() bool       { return true }

func (e *Earliest) watch(f func(later bool) (keep bool)) {
	for _, m := range e.members {
		m.limit.watch(f)
		(*engine.Limiter)(m.pause).Watch(f)
	}
}
