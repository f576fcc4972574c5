package outbound

import (
	"maps"
	"sync"
	"time"

	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/internal/queue"
)

// A line is where calls with the same limits and keys wait.
type line struct {
	*queue.Queue
	key   lineKey
	calls int // guarded by its lines
}

// A lineKey is what the limits and keys of a line's calls are.
type lineKey struct {
	of   [few + 2]any
	more any // a lineKey of further ones; nil: none
}

func (k *lineKey) add(number int, id any) {
	if number > 0 && number%len(k.of) == 0 {
		*k = lineKey{more: *k}
	}
	k.of[number%len(k.of)] = id
}

func (c *call) lineKey() (k lineKey) {
	n := 0
	for _, w := range c.served {
		for _, list := range [][]charge{w.charges, w.seats} { // a full host stops no other
			for i := range list {
				k.add(n, list[i].id())
				n++
			}
		}
		if w.upstream != nil && w.upstream.Prepare == nil {
			break // the others have the same
		}
	}
	return k
}

type lines struct {
	mu sync.Mutex
	of map[lineKey]*line
}

const idleLines = 16

func (s *lines) enter(c *call) *line {
	key := c.lineKey()
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.of[key]
	if l == nil {
		if s.of == nil {
			s.of = map[lineKey]*line{}
		}
		l = c.t.newLine(c, len(s.of) < idleLines)
		l.key, s.of[key] = key, l
	}
	l.calls++
	return l
}

func (s *lines) leave(l *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.calls--; l.calls == 0 && len(s.of) > idleLines {
		delete(s.of, l.key)
	}
}

// forget drops idle lines, whose limits' states may be forgotten.
func (s *lines) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.of, func(_ lineKey, l *line) bool { return l.calls == 0 })
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
		set.Prefers, set.Granted = u.sticky.Prefers, u.sticky.Granted
	}
	if t.classes != nil {
		set.Slack = 0 // a more urgent call may come
		set.Full = func(class int) error {
			return &fair.FullError{Class: t.classes[class].Name, MaxQueue: t.classes[class].MaxQueue}
		}
	}
	for _, c := range t.classes {
		set.Classes = append(set.Classes, queue.Class(c))
	}
	return &line{Queue: queue.New(set, watched...)}
}

func (c *call) local() bool {
	for i := range c.charges {
		if _, ok := c.charges[i].By.(pausable); !ok {
			return false
		}
	}
	return true
}
