package rate

import (
	"sync"
	"time"
)

// Sometimes does something some of the times that it is asked: the first time, and whenever one of its fields says so.
// The zero value does it once. A Sometimes must not be copied.
type Sometimes struct {
	First    int           // the first so many times
	Every    int           // every so many times, beginning with the first
	Interval time.Duration // when so much time has passed since it was done last

	mu    sync.Mutex
	asked int
	done  time.Time
}

// Do calls f, if this is one of the times. Calls run one after the other, so f must not call Do.
func (s *Sometimes) Do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now() {
		f()
		if s.Interval > 0 {
			s.done = time.Now()
		}
	}
	s.asked++
}

func (s *Sometimes) now() bool {
	return s.asked == 0 ||
		s.asked < s.First ||
		s.Every > 0 && s.asked%s.Every == 0 ||
		s.Interval > 0 && time.Since(s.done) >= s.Interval
}
