package fair

import (
	"slices"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"
)

// A handClock is moved on by hand, and calls what it was to call on the goroutine that moves it.
type handClock struct {
	clockwork.Clock // nil: only what is below is used
	mu              sync.Mutex
	now             time.Time
	timers          []*handTimer
}

type handTimer struct {
	clockwork.Timer // nil
	clock           *handClock
	at              time.Time
	f               func()
}

func newHandClock() *handClock { return &handClock{now: time.Unix(1e9, 0)} }

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c *handClock) AfterFunc(d time.Duration, f func()) clockwork.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &handTimer{clock: c, at: c.now.Add(d), f: f}
	c.timers = append(c.timers, t)
	return t
}

func (t *handTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	i := slices.Index(t.clock.timers, t)
	if i >= 0 {
		t.clock.timers = slices.Delete(t.clock.timers, i, i+1)
	}
	return i >= 0
}

// next returns when the next timer fires; the zero time: there is none.
func (c *handClock) next() (at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.timers {
		if at.IsZero() || t.at.Before(at) {
			at = t.at
		}
	}
	return at
}

// moveTo moves the clock on, and fires what is due then.
func (c *handClock) moveTo(now time.Time) {
	c.mu.Lock()
	c.now = now
	var due []*handTimer
	c.timers = slices.DeleteFunc(c.timers, func(t *handTimer) bool {
		fires := !t.at.After(now)
		if fires {
			due = append(due, t)
		}
		return fires
	})
	c.mu.Unlock()
	for _, t := range due {
		t.f()
	}
}
