package outbound

import (
	"maps"
	"sync"

	"github.com/nextfree/pace/internal/queue"
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

type lines struct {
	mu sync.Mutex
	of map[lineKey]*line
}

const idleLines = 16

// enter returns the line of a key for a call more, or a fresh one.
func (s *lines) enter(key lineKey, fresh func(kept bool) *line) *line {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.of[key]
	if l == nil {
		l = fresh(len(s.of) < idleLines)
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
