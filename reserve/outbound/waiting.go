package outbound

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	lim "github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve"
)

const (
	lookSoon  = 10 * time.Millisecond // after a call seemed to wait for nothing
	lookAgain = time.Second
)

// A reason tells why a call waits, by its limits.
type reason struct {
	states []*limitState
	seats  charges
	resume time.Time // the end of the call's own backoff
}

func (c *call) reason() reason {
	r := reason{states: slices.Clone(c.states), resume: c.resume}
	for _, w := range c.ways.served {
		r.seats = append(r.seats, w.seats...)
	}
	return r
}

// A watch tells the hook and the log why a call waits, once a second.
type watch struct {
	reason
	c *call // only what does not change while it waits

	mu       sync.Mutex // held while the hook runs, so that it does not run after the wait
	timer    clockwork.Timer
	told     Waiting
	logged   bool
	over     bool
	panicked any
}

// watch returns nil if neither hook nor log asks.
func (c *call) watch() *watch {
	if c.t.hooks.Waiting == nil && c.t.log == nil {
		return nil
	}
	w := &watch{c: c, reason: c.reason()}
	w.look()
	return w
}

// end ends the watch, and repeats a hook's panic for the call's caller.
func (w *watch) end() {
	if w == nil {
		return
	}
	w.mu.Lock()
	w.over = true
	if w.timer != nil {
		w.timer.Stop()
	}
	panicked := w.panicked
	w.mu.Unlock()
	if panicked != nil {
		panic(panicked)
	}
}

func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	defer func() {
		if w.panicked = recover(); w.panicked != nil {
			w.over = true
		}
	}()
	now := w.c.t.now()
	why, ok := w.why(now)
	next := lookAgain
	switch {
	case !ok && w.told.Why == "":
		next = lookSoon
	case ok && (w.told.Why != why.Why || w.told.Limit != why.Limit):
		if w.told = why; w.c.t.hooks.Waiting != nil {
			w.c.t.hooks.Waiting(w.c.request, why)
		}
	}
	next = min(next, w.log(now, why))
	if left := why.Until.Sub(now); left > 0 {
		next = min(next, max(left, lookSoon))
	}
	w.timer = w.c.t.watch.AfterFunc(next, w.look)
}

// log logs a long wait once, and returns when to look again.
func (w *watch) log(now time.Time, why Waiting) time.Duration {
	log := w.c.t.log
	if log == nil || w.logged {
		return lookAgain
	}
	if left := w.c.attempt.begin.Add(log.longerThan).Sub(now); left > 0 {
		return left
	}
	w.logged = true
	log.waits(now, w.c.request, now.Sub(w.c.attempt.begin), why)
	return lookAgain
}

// why returns a stop first, and of the rates the one that lets the call go last. False: nothing seems to hold the call.
func (w *reason) why(now time.Time) (why Waiting, ok bool) {
	if w.resume.After(now) {
		why, ok = Waiting{"", w.resume, Stopped}, true
	}
	for _, s := range w.states {
		if end := s.stop(now); end.After(why.Until) {
			why, ok = Waiting{s.name, end, Stopped}, true
		}
	}
	if ok {
		return why, true
	}
	if s := w.seats.find(isCrowded); s != nil {
		return Waiting{Limit: s.limit.name, Why: Crowded}, true
	}
	for _, s := range w.states {
		if s.probing() {
			return Waiting{Limit: s.name, Why: Probing}, true
		}
	}
	for _, s := range w.states {
		if at := s.until(now); at.After(now) && at.After(why.Until) {
			why, ok = Waiting{s.name, at, Paced}, true
		}
	}
	return why, ok
}

// isCrowded reports whether no place in flight is free.
func isCrowded(seat *charge) bool {
	wait, _ := seat.of.Peek(1)
	return wait > 0
}

// blame names the limit in a [reserve.WaitError].
func (c *call) blame(err error) error {
	var wait *reserve.WaitError
	if !errors.As(err, &wait) || err != error(wait) {
		return err
	}
	if wait.Limit != "" {
		return c.rename(wait)
	}
	because := c.reason()
	why, _ := because.why(c.t.now())
	name := cmp.Or(why.Limit, c.dearLimit(), c.silentLimit())
	return lim.Named(err, func() string { return name })
}

// rename gives a limit that has a name elsewhere the name that it has here.
func (c *call) rename(err *reserve.WaitError) error {
	for a := range c.ways.charges {
		if a.of.Name() == err.Limit && a.name() != "" {
			named := *err
			named.Limit = a.name()
			return &named
		}
	}
	return err
}

// dearLimit returns the name of the limit at which the call's cost would wait longest; "": none.
func (c *call) dearLimit() (name string) {
	longest := time.Duration(0)
	for a := range c.ways.charges {
		if wait, err := a.of.Peek(a.Permits); err == nil && wait > longest {
			longest, name = wait, a.name()
		}
	}
	return name
}

// silentLimit returns the name of the only limit that can't tell when it has room, such as a shared one; else "".
func (c *call) silentLimit() (name string) {
	n := 0
	for _, s := range c.states {
		if s.places == 0 && s.of.Traits().Silent {
			name = s.name
			n++
		}
	}
	if n != 1 {
		return ""
	}
	return name
}
