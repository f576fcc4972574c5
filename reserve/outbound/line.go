package outbound

import (
	"sync"
	"time"

	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/internal/queue"
	"github.com/nextfree/pace/reserve/internal/queue/share"
)

type line struct {
	*queue.Queue
	order *share.Order // nil: first come, first served
	keys  any
	calls int // guarded by its keyLines
}

type keyLines struct {
	mu sync.Mutex
	of map[any]*line
}

const idleLines = 16

func (s *keyLines) enter(c *call) *line {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.of[c.keys]
	if l == nil {
		if s.of == nil {
			s.of = map[any]*line{}
		}
		l = c.t.newLine(c, len(s.of) < idleLines)
		s.of[c.keys] = l
	}
	l.calls++
	return l
}

func (s *keyLines) leave(l *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.calls--; l.calls == 0 && len(s.of) > idleLines {
		delete(s.of, l.keys)
	}
}

// soon is how early a call is granted, so that waking late loses nothing.
const soon = 50 * time.Millisecond

// newLine returns a line for calls like this one. Only a kept line watches its limits: watchers stay there.
func (t *Transport) newLine(c *call, kept bool) *line {
	var watched [][]queue.Option
	if kept || t.upstreams != nil || !c.local() {
		watched = append(watched, c.place.Options)
	}
	set := queue.Settings{Clock: t.clock, Slack: soon}
	if u := t.upstreams; u != nil {
		set.Prefers, set.Chosen = u.prefers, u.chosen
	}
	if t.classes == nil {
		return &line{Queue: queue.New(new(queue.FIFO), 1, set, watched...), keys: c.keys}
	}
	set.Slack = 0 // a more urgent call may come
	shares := make([]share.Class, len(t.classes))
	for i, c := range t.classes {
		shares[i] = share.Class{Name: c.Name, Priority: c.Priority, Weight: c.Weight, MaxAge: c.MaxAge, MaxQueue: c.MaxQueue}
	}
	order := share.New(shares, func(class int) error {
		return &fair.FullError{Class: t.classes[class].Name, MaxQueue: t.classes[class].MaxQueue}
	})
	return &line{Queue: queue.New(order, len(shares), set, watched...), order: order, keys: c.keys}
}

func (c *call) local() bool {
	for i := range c.charges {
		if _, ok := c.charges[i].By.(pausable); !ok {
			return false
		}
	}
	return true
}
