package queue

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/order"
)

type Settings struct {
	Classes []Class               // nil: one, first come, first served
	Full    func(class int) error // makes the error of a request to a class that is full (MaxQueue)
	Clock   clockwork.Clock       // nil: the real one
	// Slack is how long before its time a place is granted, which then waits at its limits, unpassed: late wake-ups
	// lose no time. Several limits are charged too early by it: there it is at most 2 ms.
	Slack time.Duration
	// Detour is how much longer a place may wait for an option of a lower tier, or that it prefers.
	Detour time.Duration
	// Prefers returns the option that a place prefers, or -1. Granted is told the option it got. Both may be nil, and
	// must not block.
	Prefers func(p *Place) int
	Granted func(p *Place, option int)
}

// A Queue is requests in an order, in front of limits. All methods may be called at the same time.
type Queue struct {
	set     Settings
	clock   engine.Clock
	distant bool   // the only limit is between processes
	blocks  bool   // one of the limits may block
	prompt  bool   // the limits that may block are queues
	several bool   // there is more than one option
	alone   *Limit // the only limit; nil: there are several
	options []seen // by number

	waiting atomic.Int64  // places that are waiting or bound
	version atomic.Uint64 // grows with each change that is not by the queue's own reservations
	called  atomic.Bool   // a goroutine is about to look
	nested  atomic.Bool   // queues around this one are told of changes
	served  atomic.Uint64
	watcher *engine.Watcher

	binding lock  // held while the queue reserves; taken before mu
	began   int64 // when that was; binding guards it

	mu        sync.Mutex
	order     *order.Order[Place]
	deadlines []order.Heap[int64, Place] // by class: places that must go by a time
	seen      int64                      // the latest reading of the clock
	asking    *Place                     // whose state is binding
	leaving   int                        // holds of places that have left, which are about to be given back
	bound     *hold                      // of the first
	passed    []*Place                   // that others pass; each has a hold
	rates     []rate                     // of limits that may block, as they said last
	notBefore int64                      // a distant limit grants nothing before
	cost      int64                      // how long a call to a distant limit took lately
	timer     stopper                    // looks again
	timed     int64                      // when; or never
	renewed   int64                      // anew waits until then
	outer     engine.Watchers
}

type seen struct {
	known   atomic.Int64  // when it grants, by the last answer of limits that can't be asked without taking
	last    atomic.Uint64 // when it was chosen last
	closed  atomic.Bool   // for all
	watcher *engine.Watcher
}

// A lock is a mutex; if it is held during calls that may block, a channel, so that a testing/synctest bubble's time
// goes on.
type lock struct {
	mutex sync.Mutex
	calls chan struct{} // nil: the mutex
}

func (l *lock) lock() { _ = l.lockWithin(context.Background()) }

// lockWithin is lock, but where something may block until the context ends; then it returns the cause.
func (l *lock) lockWithin(ctx context.Context) error {
	if l.calls == nil {
		l.mutex.Lock()
		return nil
	}
	select {
	case l.calls <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
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

// New returns a queue. The options of a place of each class say whether a limit may block, and which limits to watch.
func New(set Settings, options ...[]Option) *Queue {
	if set.Classes == nil {
		set.Classes = make([]Class, 1)
	}
	q := &Queue{set: set, timed: never, notBefore: math.MinInt64}
	q.deadlines = make([]order.Heap[int64, Place], len(set.Classes))
	var classes []order.Class
	for _, c := range set.Classes {
		classes = append(classes, c.inOrder())
	}
	q.order = order.New(classes, func(p *Place) bool { return p.hold.own() })
	if set.Clock != nil {
		q.clock = engine.On(set.Clock)
	}
	q.clock = q.clock.Begun()
	most := 0
	limits := map[*Limit]bool{}
	for _, list := range options {
		most = max(most, len(list))
		for _, o := range list {
			for j := range o.Limits {
				q.alone = &o.Limits[j]
				limits[q.alone] = true
			}
		}
	}
	q.several, q.options = most > 1, make([]seen, most)
	if len(limits) > 1 {
		q.alone = nil
	}
	q.watch(limits)
	if q.blocks {
		q.binding.calls = make(chan struct{}, 1)
	}
	return q
}

func (q *Queue) Close(option int, closed bool) {
	q.options[option].closed.Store(closed)
	q.Look()
}

func (q *Queue) Waiting() int { return int(q.waiting.Load()) }

func (q *Queue) Counts() []order.Counts {
	q.lock()
	defer q.mu.Unlock()
	return q.order.Counts()
}

// first returns the place that goes if permits are free now, but for places that others pass; or nil.
func (q *Queue) first() *Place {
	if e := q.order.First(); e != nil {
		return e.Of
	}
	return nil
}

// lock locks the queue, after it has read the clock.
func (q *Queue) lock() (now int64) {
	t := q.clock.Now()
	q.mu.Lock()
	q.seen = max(q.seen, t)
	q.order.At(q.seen)
	return q.seen
}

func (q *Queue) at(now int64) engine.Moment { return engine.Moment{Clock: &q.clock, Now: now} }

// lately returns the time, for a caller that holds binding: where nothing blocks no clock is read.
func (q *Queue) lately() int64 {
	if q.blocks {
		return q.clock.Now()
	}
	return q.began
}
