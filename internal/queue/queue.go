package queue

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/reserve"
)

// Settings are those of a queue.
type Settings struct {
	Classes []Class               // nil: one, first come, first served
	Full    func(class int) error // makes the error of a request to a class that is full (MaxQueue)
	Clock   clockwork.Clock       // nil: the real one
	// Slack is how long before its time a place is granted. It waits for the rest at its limits, unpassed, so late
	// wake-ups lose no time. Several limits are charged too early by it: there it is at most 2 ms. Default: 0.
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
	several bool   // there is more than one option
	alone   *Limit // the only limit; nil: there are several
	options []seen // by number

	waiting atomic.Int64 // places that are waiting or bound
	kicked  atomic.Bool  // a look has been asked for
	quiet   atomic.Bool  // the queue itself changes the limit
	epoch   atomic.Int64 // how often something has changed
	served  atomic.Uint64
	// deaf: a caller waits at the only limit, so an earlier time needs nothing.
	deaf atomic.Bool

	binding lock // held while the queue reserves; taken before mu

	mu        sync.Mutex
	order     *order
	seen      int64    // the latest reading of the clock
	bound     *hold    // of the first
	passed    []*Place // that others pass; each has a hold
	notBefore int64    // a distant limit grants nothing before
	cost      int64    // how long a call to a distant limit took lately
	timer     stopper  // looks again
	timed     int64    // when; or never
	renewed   int64    // anew and moves to other options wait until then
	compared  int64    // the epoch that anew has seen
}

type seen struct {
	known atomic.Int64  // when it grants, by the last answer of limits that can't be asked without taking
	last  atomic.Uint64 // when it was chosen last
}

// A lock is a mutex; if it is held during calls that may block, a channel, so that a testing/synctest bubble's time
// goes on.
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

// New returns a queue. The options of a place of each class say whether a limit may block, and which limits to watch.
func New(set Settings, options ...[]Option) *Queue {
	if set.Classes == nil {
		set.Classes = make([]Class, 1)
	}
	q := &Queue{order: newOrder(set.Classes), set: set, timed: never, notBefore: math.MinInt64}
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

func (q *Queue) watch(limits map[*Limit]bool) {
	watched := map[*reserve.Limiter]bool{}
	for l := range limits {
		kind := kindOf(l.By)
		q.blocks = q.blocks || kind.blocks()
		q.distant = kind == distant && len(limits) == 1
		if by, ok := l.By.(*reserve.Limiter); ok && !watched[by] {
			watched[by] = true
			(*engine.Limiter)(by).Watch(q.watcher())
		}
	}
}

// watcher returns a function that makes the queue look when promised times become earlier or later.
func (q *Queue) watcher() func(later bool) (keep bool) {
	weakly := weak.Make(q)
	return func(later bool) bool {
		q := weakly.Value()
		if q != nil && !q.quiet.Load() && (later || !q.deaf.Load()) {
			q.kick()
		}
		return q != nil
	}
}

// Waiting returns how many requests wait.
func (q *Queue) Waiting() int { return int(q.waiting.Load()) }

// Rate returns the sum of the options' rates, each that of its slowest limit; 0: one is unknown.
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

// Counts returns those of each class, at one moment.
func (q *Queue) Counts() (all []Counts) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	for _, c := range q.order.classes {
		counts := c.counts
		counts.Class, counts.Waiting, counts.Tenants = c.Name, c.waiting.length, len(c.active)+len(c.idle)
		if p := c.waiting.head; p != nil {
			counts.LongestWait = max(counts.LongestWait, time.Duration(now-p.rank.Arrived))
		}
		all = append(all, counts)
	}
	return all
}

func (q *Queue) now() int64 {
	q.seen = max(q.seen, q.clock.Now())
	q.order.at(q.seen)
	return q.seen
}
