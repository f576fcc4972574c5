package engine

import (
	"slices"
	"sort"
	"time"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/internal/wake"
)

// sleepers are the waiting callers in order. Only the first two have timers, since times move with every refund; the
// second because the first may be scheduled late.
type sleepers struct {
	all  bool       // each has a timer of its own: on a fake clock, whose user counts them
	list []*sleeper // from head on; callers that have left stay until they are passed
	head int
	left int // how many from head on have left
	free []*sleeper

	permits int           // that they wait for, together
	waited  time.Duration // by callers that have left, together

	checking bool   // whether all can still meet their deadlines: see check
	checked  uint64 // up to this number they can

	watchers []func(later bool) (keep bool) // see Limiter.Watch
	heir     func(permits int)              // gets the charges of a limiter that was retired: see Limiter.Retire
}

type sleeper struct {
	wake.Sleeper
	number   uint64
	deadline int64 // or never
	timed    bool  // it is one of the first two: it has a timer, or sets one before it sleeps
	second   bool  // of the first two
	until    int64 // the time that its timer is set for, or will be
	left     bool
	stalled  bool // see Limiter.checkStall
}

const (
	withTimer    = 2
	keptSleepers = 1024 // so many sleepers that have left are kept for others
)

func (s *sleepers) enter(number uint64, deadline int64) *sleeper {
	var e *sleeper
	if n := len(s.free); n > 0 {
		e, s.free = s.free[n-1], s.free[:n-1]
	} else {
		e = new(sleeper)
	}
	e.Reset()
	e.number, e.deadline, e.until, e.left, e.stalled = number, deadline, never, false, false
	if len(s.list) == cap(s.list) && s.head > len(s.list)/2 {
		s.compact()
	}
	i := len(s.list)
	if i > s.head && s.list[i-1].number > number {
		i = s.head + s.search(number)
	}
	s.list = slices.Insert(s.list, i, e)
	before := s.before(i)
	e.timed, e.second = s.all || before < withTimer, before > 0
	return e
}

func (s *sleepers) first() *sleeper {
	for _, e := range s.list[s.head:] {
		if !e.left {
			return e
		}
	}
	return nil
}

// before returns how many are in front of a sleeper, if few.
func (s *sleepers) before(i int) (n int) {
	for i--; i >= s.head && n < withTimer; i-- {
		if !s.list[i].left {
			n++
		}
	}
	return n
}

func (s *sleepers) search(number uint64) int {
	live := s.list[s.head:]
	return sort.Search(len(live), func(i int) bool { return live[i].number > number })
}

func (s *sleepers) leave(e *sleeper) {
	e.left = true
	s.left++
	for s.head < len(s.list) && s.list[s.head].left {
		s.drop(s.list[s.head])
		s.list[s.head] = nil
		s.head++
		s.left--
	}
	if s.head == len(s.list) && cap(s.list) > keptSleepers {
		s.list, s.head = nil, 0
	}
	if s.left > 32 && s.left > (len(s.list)-s.head)/2 {
		s.compact()
	}
}

// compact removes the sleepers that have left from the list.
func (s *sleepers) compact() {
	kept := s.list[:0]
	for _, e := range s.list[s.head:] {
		if e.left {
			s.drop(e)
		} else {
			kept = append(kept, e)
		}
	}
	clear(s.list[len(kept):])
	s.list, s.head, s.left = kept, 0, 0
}

func (s *sleepers) drop(e *sleeper) {
	if len(s.free) < keptSleepers {
		s.free = append(s.free, e)
	}
}

// tell sets the timers of the first two, if not set or now earlier.
func (s *sleepers) tell(l *Limiter, now int64) {
	if s == nil {
		return
	}
	for i, n := s.head, 0; i < len(s.list) && n < withTimer; i++ {
		e := s.list[i]
		if e.left {
			continue
		}
		if n == 0 || !e.timed {
			e.timed, e.second = true, n > 0
			if at, known := l.ledger.Ready(now, e.number); !known || s.all && at < e.until {
				e.wake() // it was granted, or sleeps by a timer of its own
			} else if at < e.until {
				e.set(l, now, at)
			}
		}
		n++
	}
}

// set sets the sleeper's timer. The second's is later by the slack, so that it normally never ends.
func (e *sleeper) set(l *Limiter, now, at int64) {
	slack := l.slack()
	if e.until = at; e.second {
		e.until = saturate.Add(at, int64(slack))
	}
	e.Set(until(e.until, now), slack)
}

func (s *sleepers) wake(number uint64) {
	for i := s.head + s.search(number) - 1; i >= s.head && s.list[i].number == number; i-- {
		s.list[i].wake()
	}
}

// giveUp wakes callers whose time is past their deadline.
func (s *sleepers) giveUp(l *Limiter, now int64) {
	if s != nil {
		s.checked = 0
		s.check(l, now)
	}
}

// block is how many callers check asks at once: singly, PauseUntil takes 11 ms with 100,000 asleep.
const block = 256

// check wakes the first caller whose time is past its deadline; when that leaves, it goes on. Times rise along the
// list: a block's last time before all its deadlines is enough.
func (s *sleepers) check(l *Limiter, now int64) {
	for list := s.list[s.head+s.search(s.checked):]; len(list) > 0; {
		part := list[:min(block, len(list))]
		list = list[len(part):]
		if e := s.late(l, now, part); e != nil {
			e.wake()
			s.checking = true
			return
		}
		s.checked = part[len(part)-1].number
	}
	s.checking = false
}

// late returns the first of a block whose time is past its deadline, or nil.
func (s *sleepers) late(l *Limiter, now int64, part []*sleeper) *sleeper {
	earliest, last := int64(never), (*sleeper)(nil)
	for _, e := range part {
		if !e.left {
			earliest, last = min(earliest, e.deadline), e
		}
	}
	if earliest == never {
		return nil
	}
	if at, known := l.ledger.Ready(now, last.number); known && at <= earliest {
		return nil
	}
	for _, e := range part { // the ledger does not know the time of a sleeper that has left
		if at, known := l.ledger.Ready(now, e.number); known && at > e.deadline {
			return e
		}
	}
	return nil
}

func (e *sleeper) wake() {
	e.until = 0
	e.Wake()
}
