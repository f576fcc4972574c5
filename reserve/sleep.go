package reserve

import (
	"context"
	"slices"
	"sort"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/wake"
)

// sleep blocks until the reservation's time has come, and returns how long that
// took. If it can't be awaited, the reservation is given back. The limiter must be
// locked; it is unlocked when sleep returns.
func (l *Limiter) sleep(ctx context.Context, r *Reservation, now, deadline int64) (waited time.Duration, err error) {
	begin := now
	over := false
	s := l.sleepersOf().enter(r.slot.Number, deadline)
	r.sleepers++
	defer func() {
		if !over { // the context's methods are the caller's, and may panic
			l.settle(l.seen, r, 0)
		}
		r.sleepers--
		l.rest.sleepers.leave(s)
		l.rest.sleepers.waited += waited
		l.rest.sleepers.tell(l, l.seen)
		if l.rest.sleepers.checking {
			l.rest.sleepers.check(l, l.seen)
		}
		l.mu.Unlock()
	}()
	for {
		at := r.at(now)
		if r.nothing {
			err = ErrCancelled
		} else if at <= now {
			over = true
			return time.Duration(max(0, at-begin)), nil
		} else if deadline < at && err == nil {
			err = &WaitError{
				Wait: until(at, now), MaxWait: until(deadline, now),
				Cause: context.DeadlineExceeded,
			}
		}
		if err != nil {
			return time.Duration(now - begin), err
		}
		s.until = never
		if s.timed {
			s.until = at
		}
		now, err = l.nap(ctx, s, now, s.until)
	}
}

// nap sleeps until the end, or until there is a reason to look again. It unlocks the limiter
// meanwhile.
func (l *Limiter) nap(ctx context.Context, s *sleeper, now, end int64) (later int64, err error) {
	l.mu.Unlock()
	defer func() { later = l.lock() }()
	sleep(ctx, &l.clock, now, end, &s.Sleeper)
	return 0, done.Cause(ctx)
}

// Sleepers are those that wait for their time, in the order of their numbers. Their times move
// whenever something is given back, so only the first two sleep by a timer, and only the first is
// woken when its time has become earlier. When one leaves, it tells those that are the first two
// then; until they are told the others sleep without a timer. (The second has one for the case that
// the first is not scheduled in time.)
type sleepers struct {
	all  bool       // each has a timer: on a fake clock, whose user counts them
	list []*sleeper // from first on; those that have left stay until they are passed
	head int
	left int // how many of those after head have left
	free []*sleeper

	waited time.Duration // by those that have left, together

	checking bool   // whether all can still meet their deadlines: see check
	checked  uint64 // up to this number they can

	watchers []func(later bool) (keep bool) // see Limiter.watch
}

type sleeper struct {
	wake.Sleeper
	number   uint64
	deadline int64 // or never
	timed    bool  // it has a timer, or will have one when it sleeps again
	until    int64 // when that wakes it
	left     bool
}

const (
	withTimer    = 2
	keptSleepers = 1024 // so many sleepers that have left are kept for others
)

// enter adds a sleeper.
func (s *sleepers) enter(number uint64, deadline int64) *sleeper {
	var e *sleeper
	if n := len(s.free); n > 0 {
		e, s.free = s.free[n-1], s.free[:n-1]
	} else {
		e = new(sleeper)
	}
	e.Reset()
	e.number, e.deadline, e.until, e.timed, e.left = number, deadline, never, false, false
	i := len(s.list)
	if i > s.head && s.list[i-1].number > number {
		i = s.head + s.search(number)
	}
	if i == len(s.list) && len(s.list) == cap(s.list) && s.head > len(s.list)/2 {
		i = copy(s.list, s.list[s.head:])
		clear(s.list[i:])
		s.list, s.head = s.list[:i], 0
	}
	s.list = slices.Insert(s.list, i, e)
	e.timed = s.all || s.before(i) < withTimer
	return e
}

// before returns how many there are in front of one, if they are few.
func (s *sleepers) before(i int) (n int) {
	for i--; i >= s.head && n < withTimer; i-- {
		if !s.list[i].left {
			n++
		}
	}
	return n
}

// search returns where, from head on, the first with a number that is higher is.
func (s *sleepers) search(number uint64) int {
	live := s.list[s.head:]
	return sort.Search(len(live), func(i int) bool { return live[i].number > number })
}

// leave takes a sleeper off the list.
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
	if live := s.list[s.head:]; s.left > 32 && s.left > len(live)/2 {
		kept := s.list[:0]
		for _, e := range live {
			if e.left {
				s.drop(e)
			} else {
				kept = append(kept, e)
			}
		}
		clear(s.list[len(kept):])
		s.list, s.head, s.left = kept, 0, 0
	}
}

func (s *sleepers) drop(e *sleeper) {
	if len(s.free) < keptSleepers {
		s.free = append(s.free, e)
	}
}

// tell wakes those of the first ones that have to look at their time again. S may be nil.
func (s *sleepers) tell(l *Limiter, now int64) {
	if s == nil {
		return
	}
	for i, n := s.head, 0; i < len(s.list) && n < withTimer; i++ {
		e := s.list[i]
		if e.left {
			continue
		}
		if !e.timed {
			e.timed = true
			e.wake()
		} else if n == 0 {
			if at, known := l.ledger.Ready(now, e.number); !known || at < e.until {
				e.wake() // it has gone, or will go earlier
			}
		}
		n++
	}
}

// wake wakes those that sleep for a number.
func (s *sleepers) wake(number uint64) {
	for i := s.head + s.search(number) - 1; i >= s.head && s.list[i].number == number; i-- {
		s.list[i].wake()
	}
}

// giveUp has those give up whose time has become later than their deadline. S may be nil.
func (s *sleepers) giveUp(l *Limiter, now int64) {
	if s != nil {
		s.checked = 0
		s.check(l, now)
	}
}

// check wakes the first one whose time is later than its deadline, and goes on when that has left:
// with it gone, the others may still fit.
func (s *sleepers) check(l *Limiter, now int64) {
	for _, e := range s.list[s.head+s.search(s.checked):] {
		if !e.left && e.deadline != never {
			if at, known := l.ledger.Ready(now, e.number); known && at > e.deadline {
				e.wake()
				s.checking = true
				return
			}
		}
		s.checked = e.number
	}
	s.checking = false
}

// wake wakes one, once.
func (e *sleeper) wake() {
	e.until = 0
	e.Wake()
}
