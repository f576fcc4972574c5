package engine

import (
	"sort"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/line"
	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/internal/wake"
)

// sleepers are the waiting callers in order. Only the first two have timers, since times move with every refund; the
// second in case the first is scheduled late.
type sleepers struct {
	list line.Queue[*sleeper] // in order; callers that have left stay until they are passed: the first has not left
	left int                  // how many of the list have left

	permits int           // that they wait for, together
	also    int           // callers that wait elsewhere, and hold a reservation here: see Reservation.Count
	waited  time.Duration // by callers that have left, together
	late    uint64        // a caller that check has woken; 0: none

	watchers Watchers          // see Limiter.Watch
	causes   any               // the owner of watchers that makes the present change; nil: another
	heir     func(permits int) // gets the charges of a limiter that was retired: see Limiter.Retire
}

type sleeper struct {
	wake.Sleeper
	number   uint64
	deadline int64 // or never
	timed    bool  // it is one of the first two: it has a timer, or sets one before it sleeps
	until    int64 // the time that its timer is set for, or will be
	left     bool
	stalled  bool // see Limiter.checkStall
}

const withTimer = 2

var unused = sync.Pool{New: func() any { return new(sleeper) }}

func (s *sleepers) enter(number uint64, deadline int64) *sleeper {
	e := unused.Get().(*sleeper)
	e.Reset()
	e.number, e.deadline, e.until, e.left, e.stalled = number, deadline, never, false, false
	all := s.list.All()
	i := len(all)
	if i > 0 && all[i-1].number > number {
		i = s.search(number)
	}
	s.list.Insert(i, e)
	for i > 1 && all[i-1].left {
		i--
	}
	e.timed = i < withTimer
	return e
}

func (s *sleepers) waiting() int { return s.list.Len() - s.left + s.also }

func (s *sleepers) search(number uint64) int {
	all := s.list.All()
	return sort.Search(len(all), func(i int) bool { return all[i].number > number })
}

func (s *sleepers) leave(e *sleeper) {
	e.left = true
	s.left++
	n := 0
	for all := s.list.All(); n < len(all) && all[n].left; n++ {
		drop(all[n])
	}
	s.list.Drop(n)
	s.left -= n
	if s.left > 32 && s.left > s.list.Len()/2 {
		s.list.Delete(drop)
		s.left = 0
	}
}

// drop keeps a sleeper that has left for other callers, and reports whether it has.
func drop(e *sleeper) (left bool) {
	if left = e.left; left {
		unused.Put(e)
	}
	return left
}

// tell sets the timers of the first two, if not set or now earlier.
func (s *sleepers) tell(l *Limiter, now int64) {
	n := 0
	for _, e := range s.list.All() {
		if e.left {
			continue
		}
		if n == 0 || !e.timed {
			e.timed = true
			if at, known := l.ledger.Ready(now, e.number); !known || l.clock.Fake != nil && at < e.until {
				e.wake() // it was granted, or sleeps by a fake clock
			} else if at < e.until {
				e.set(l, now, at)
			}
		}
		if n++; n == withTimer {
			return
		}
	}
}

// set sets the sleeper's timer. The second's is later by the slack, so that it normally never ends.
func (e *sleeper) set(l *Limiter, now, at int64) {
	slack := l.slack()
	if e.until = at; e != l.cold.sleepers.list.All()[0] {
		e.until = saturate.Add(at, int64(slack))
	}
	e.Set(until(e.until, now), slack)
}

func (s *sleepers) wake(number uint64) {
	all := s.list.All()
	for i := s.search(number) - 1; i >= 0 && all[i].number == number; i-- {
		all[i].wake()
	}
}

// block is for how many callers check asks at once: PauseUntil took 11 ms with 100,000 asleep.
const block = 256

// check wakes the first caller behind that number whose time is past its deadline; when that leaves, it goes on. Times
// rise along the list: a block's last time is enough.
func (s *sleepers) check(l *Limiter, now int64, after uint64) {
	s.late = 0
	for list := s.list.All()[s.search(after):]; len(list) > 0; {
		part := list[:min(block, len(list))]
		list = list[len(part):]
		earliest, last := tightest(part)
		if earliest == never {
			continue
		}
		if at, known := l.ledger.Ready(now, last.number); known && at <= earliest {
			continue
		}
		for _, e := range part {
			if at, known := l.ledger.Ready(now, e.number); !e.left && known && at > e.deadline {
				s.late = e.number
				e.wake()
				return
			}
		}
	}
}

// tightest returns the earliest deadline and the last of the sleepers that have not left.
func tightest(list []*sleeper) (deadline int64, last *sleeper) {
	deadline = never
	for _, e := range list {
		if !e.left {
			deadline, last = min(deadline, e.deadline), e
		}
	}
	return deadline, last
}

func (e *sleeper) wake() {
	e.until = 0
	e.Wake()
}
