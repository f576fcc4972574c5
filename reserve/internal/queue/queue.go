package queue

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
)

// Settings are those of a queue.
type Settings struct {
	Clock clockwork.Clock // nil: the real one
	// Slack: a place is granted so long before its time, and waits for the rest at its limits. So a program that wakes a
	// caller late loses no time at a limit that saves nothing. Several limits are charged so much too early: for these
	// it is at most 2 ms. Nobody goes before a place that is granted. 0: a place is granted when its time has come.
	Slack time.Duration
	// Detour is how much longer than at the earliest option a place may wait for one of a lower tier, or that it prefers.
	Detour time.Duration
	// Prefers returns the option that a place would like best, or -1, and Chosen says which one it got. They may be nil.
	// They must not block.
	Prefers func(p *Place) int
	Chosen  func(p *Place, option int)
}

// A Queue is requests in an order, in front of limits. It comes from [New]. All methods may be called at the same time.
type Queue struct {
	order   Order
	set     Settings
	clock   engine.Clock
	distant bool    // one of the limits is shared between processes
	blocks  bool    // one of the limits may block
	several bool    // there is more than one option
	alone   *Limit  // the only limit that there is; nil: there are several
	options []*seen // by number: what is known of them

	waiting atomic.Int64 // places that are waiting or bound
	kicked  atomic.Bool  // a look has been asked for
	quiet   atomic.Bool  // the queue itself changes the limit
	epoch   atomic.Int64 // how often something has changed
	// deaf is true while a caller waits for the hold at the only limit that there is: then nothing needs to be done when
	// the limit grants earlier.
	deaf atomic.Bool

	binding lock // held while the queue reserves; taken before mu

	mu        sync.Mutex
	seen      int64                // the latest reading of the clock
	bound     *hold                // of the first; at most one
	passed    []*Place             // that others pass; each has a hold
	lapse     []Heap[int64, Place] // by group: places that must go by a time
	notBefore int64                // the limit grants nothing before
	cost      int64                // how long a call to a distant limit took lately
	timer     stopper              // looks again
	timed     int64                // when; or never
	served    uint64
	renewed   int64 // their holds are not made anew before
	compared  int64 // the epoch in which places that others pass were bound
}

// seen is what is known of an option.
type seen struct {
	known atomic.Int64 // when it grants at the earliest, by the last answer; it counts where a limit can't be asked without taking
	last  uint64       // when it was chosen last
}

// A lock is a mutex. Where it is held during calls that may block it is a channel, so that the time of a
// testing/synctest bubble goes on meanwhile.
type lock struct {
	mutex sync.Mutex
	calls chan struct{} // nil: the mutex
}

func (l *lock) lock() {
	if l.calls != nil {
		l.calls <- struct{}{}
	} else {
		l.mutex.Lock()
	}
}

func (l *lock) unlock() {
	if l.calls != nil {
		<-l.calls
	} else {
		l.mutex.Unlock()
	}
}

type stopper interface{ Stop() bool }

// New returns a queue with an order. Its places are in so many groups. Options are those that its places have, of one
// place of each kind: by them it knows whether a limit may block, and looks again when one of several changes.
func New(order Order, groups int, set Settings, options ...[]Option) *Queue {
	q := &Queue{order: order, set: set, lapse: make([]Heap[int64, Place], groups), timed: never, notBefore: math.MinInt64}
	several := false
	for _, list := range options {
		q.several = q.several || len(list) > 1
		for len(q.options) < len(list) {
			q.options = append(q.options, new(seen))
			q.options[len(q.options)-1].known.Store(math.MinInt64)
		}
		for i := range list {
			for j := range list[i].Limits {
				l := &list[i].Limits[j]
				switch kindOf(l.By) {
				case distant:
					q.distant, q.blocks = true, true
				case foreign, keyed: // whose policy is a function of the user's
					q.blocks = true
				}
				if several = several || q.alone != nil && q.alone != l; q.alone == nil {
					q.alone = l
				}
			}
		}
	}
	if several {
		q.alone = nil
	}
	q.distant = q.distant && q.alone != nil
	if q.blocks {
		q.binding.calls = make(chan struct{}, 1)
	}
	if set.Clock != nil {
		q.clock = engine.On(set.Clock)
	}
	q.clock = q.clock.Begun()
	q.watch(options)
	return q
}

// watch makes the queue look when a limit changes.
func (q *Queue) watch(options [][]Option) {
	weakly := weak.Make(q)
	changed := func(later bool) bool {
		q := weakly.Value()
		if q != nil && !q.quiet.Load() && (later || !q.deaf.Load()) {
			q.kick()
		}
		return q != nil
	}
	watched := map[*reserve.Limiter]bool{nil: true}
	once := func(l *reserve.Limiter) {
		if !watched[l] {
			watched[l] = true
			(*engine.Limiter)(l).Watch(changed)
		}
	}
	for _, list := range options {
		for _, o := range list {
			for _, l := range o.Limits {
				by, _ := l.By.(*reserve.Limiter)
				once(by)
				once(l.Pause)
			}
		}
	}
}

// fast is the rate at which a program that wakes late loses more than a limit that is charged 2 ms too early.
const fast = 100

// slack returns the slack of an option with these limits. Of several, all but the last to have room are charged so much
// too early: so there is only a little, and none if one of them is slow.
func (q *Queue) slack(limits []Limit) time.Duration {
	if len(limits) == 1 || q.set.Slack == 0 {
		return q.set.Slack
	}
	rates, slow := 0, false
	for i := range limits {
		kind, rate := kindOf(limits[i].By), limits[i].rate()
		if kind != inFlight {
			rates++
		}
		slow = slow || rate > 0 && rate < fast || rate == 0 && kind == foreign
	}
	if rates > 1 && slow {
		return 0
	}
	return min(q.set.Slack, 2*time.Millisecond)
}

// Enter puts a place into the queue, for at most maxWait and the context's deadline. If its forecast is later than
// these it takes nothing and returns a *[reserve.WaitError]. If no option can ever grant it, it returns a
// *[reserve.SizeError].
func (q *Queue) Enter(ctx context.Context, p *Place, maxWait time.Duration) error {
	if err := done.Cause(ctx); err != nil {
		return err
	}
	deadline := q.clock.Deadline(ctx)
	p.queue, p.ctx = q, ctx
	if err := p.fits(); err != nil {
		return err
	}
	q.mu.Lock()
	if h := q.bound; h != nil && h.place.sleepers == 0 && h.delay() <= 0 { // the timer may be late
		q.mu.Unlock()
		if err := q.lookFor(ctx); err != nil {
			return err
		}
		q.mu.Lock()
	}
	now := q.now()
	p.begin, p.within, p.deadline = now, never, deadline
	p.state, p.hold, p.err, p.settled = waiting, nil, nil, false
	if maxWait < reserve.Forever {
		p.within = add(now, max(0, maxWait))
	}
	if err := q.order.Push(now, p); err != nil {
		q.mu.Unlock()
		return err
	}
	q.waiting.Add(1)
	hopeless, _ := q.hopeless(now)
	look := hopeless != nil || q.order.First(now) == p
	q.mu.Unlock()
	if look {
		if err := q.lookFor(ctx); err != nil {
			return q.refuse(p, err)
		}
	}
	return q.admit(p, maxWait)
}

// fits returns the error of a place that no option can ever grant.
func (p *Place) fits() error {
	most := 0
	for i, o := range p.Options {
		if p.Except != nil && p.Except(i) {
			continue
		}
		size := o.tooLarge(p)
		if size == nil {
			return nil
		}
		most = max(most, size.Max)
	}
	if most == 0 {
		return nil
	}
	return &reserve.SizeError{Permits: p.Permits, Max: most}
}

// tooLarge returns the error of a limit that never grants what a place asks of it.
func (o *Option) tooLarge(p *Place) *reserve.SizeError {
	for i := range o.Limits {
		l := &o.Limits[i]
		n := l.permits(p)
		if n == 1 || l.Clip {
			continue
		}
		if _, err := l.wait(n); tooMany(err) > 0 {
			return &reserve.SizeError{Permits: n, Max: tooMany(err)}
		}
	}
	return nil
}

// refuse takes a place out again that has entered, if it has not been granted meanwhile.
func (q *Queue) refuse(p *Place, why error) error {
	q.mu.Lock()
	if p.state == granted {
		q.mu.Unlock()
		return nil
	}
	if p.state == over {
		q.mu.Unlock()
		return p.failure()
	}
	q.order.Lapsed(q.now(), p)
	h := q.leave(p, why)
	q.mu.Unlock()
	q.gone(h)
	return why
}

// admit refuses a place that has entered, if its forecast is too late.
func (q *Queue) admit(p *Place, maxWait time.Duration) error {
	q.mu.Lock()
	now := q.now()
	var wait time.Duration
	switch p.state {
	case granted:
		q.mu.Unlock()
		return nil
	case over:
		defer q.mu.Unlock()
		return p.failure()
	case bound:
		if wait = p.hold.delay(); wait == unknown {
			wait = 1
		}
	case waiting:
		if p.latest() == never {
			q.stays(now, p)
			return nil
		}
		var exact bool
		if wait, exact = q.atMost(now, p); !exact && (add(now, wait) > p.latest() || maxWait <= 0) {
			wait = q.forecast(p)
		}
	}
	if add(now, wait) <= p.latest() && (wait == 0 || maxWait > 0) {
		q.stays(now, p)
		return nil
	}
	q.mu.Unlock()
	return q.refuse(p, p.late(now, wait))
}

// stays makes the queue look when a place that was admitted has to go at the latest. The queue must be locked, and is
// unlocked then.
func (q *Queue) stays(now int64, p *Place) {
	if p.latest() < never {
		q.lapses(p)
		q.arm(now)
	}
	q.mu.Unlock()
}

// Refusal returns the error that Enter would return to a place. It takes nothing.
func (q *Queue) Refusal(ctx context.Context, p *Place, maxWait time.Duration) error {
	if err := done.Cause(ctx); err != nil {
		return err
	}
	deadline := q.clock.Deadline(ctx)
	if err := p.fits(); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	p.begin, p.within, p.deadline, p.queue, p.ctx = now, never, deadline, q, ctx
	p.state = waiting
	if maxWait < reserve.Forever {
		p.within = add(now, max(0, maxWait))
	}
	if err := q.order.Push(now, p); err != nil {
		return err
	}
	wait := q.forecast(p)
	q.order.Remove(now, p)
	if add(now, wait) > p.latest() {
		return p.late(now, wait)
	}
	return nil
}

// late returns the error of a place that would have to wait so much longer, counted from when it entered.
func (p *Place) late(now int64, wait time.Duration) error {
	wait = add(time.Duration(now-p.begin), wait)
	if p.deadline < p.within {
		return &reserve.WaitError{Wait: wait, MaxWait: time.Duration(p.deadline - p.begin), Cause: context.DeadlineExceeded}
	}
	return &reserve.WaitError{Wait: wait, MaxWait: time.Duration(p.within - p.begin)}
}

// Waiting returns how many requests wait.
func (q *Queue) Waiting() int { return int(q.waiting.Load()) }

// Rate returns the sum of the rates of some options, each that of its slowest limit; 0: one is not known.
func Rate(options []Option) (sum float64) {
	for i := range options {
		rate := options[i].rate(nil)
		if rate == 0 {
			return 0
		}
		sum += rate
	}
	return sum
}

// Locked calls f under the queue's lock, with its time: for what reads the order.
func (q *Queue) Locked(f func(now int64)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f(q.now())
}
