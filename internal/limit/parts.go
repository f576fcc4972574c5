package limit

import (
	"math"
	"time"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/reserve"
)

type all struct {
	Base
	parts []Limit
}

func newAll(by reserve.Reserver, parts []reserve.Reserver) Limit {
	a := &all{Base: Base{Reserver: by}}
	for _, part := range parts {
		a.parts = append(a.parts, Of(part))
	}
	return a
}

func (a *all) each(f func(Limit)) {
	for _, part := range a.parts {
		f(part)
	}
}

func (a *all) Peek(n int) (longest time.Duration, err error) {
	for _, part := range a.parts {
		wait, failed := part.Peek(n)
		if failed != nil {
			return 0, failed
		}
		longest = max(longest, wait)
	}
	return longest, nil
}

// Outlook is the parts' together.
func (a *all) Outlook() (o engine.Outlook, known bool) {
	o = engine.Outlook{Rate: math.Inf(1), Capacity: math.Inf(1), Stored: math.Inf(1)}
	for _, part := range a.parts {
		of, tells := part.Outlook()
		if !tells {
			return engine.Outlook{}, false
		}
		if of.Rate < o.Rate {
			o.Window = of.Window
		}
		o.Rate, o.Capacity, o.Stored = min(o.Rate, of.Rate), min(o.Capacity, of.Capacity), min(o.Stored, of.Stored)
		o.Wait = max(o.Wait, of.Wait)
	}
	return o, len(a.parts) > 0
}

func (a *all) Rate() float64 {
	lowest := math.Inf(1)
	for _, part := range a.parts {
		lowest = min(lowest, part.Rate()) // 0: unknown
	}
	return lowest
}

// Name is that of the part that a request would wait for longest.
func (a *all) Name() (name string) {
	longest := time.Duration(-1)
	for _, part := range a.parts {
		if wait, err := part.Peek(1); err == nil && wait > longest {
			longest, name = wait, part.Name()
		}
	}
	return name
}

func (a *all) Stop(t time.Time) { a.each(func(part Limit) { part.Stop(t) }) }

func (a *all) Version() (sum uint64) {
	a.each(func(part Limit) { sum += part.Version() })
	return sum
}

func (a *all) Traits() (t Traits) {
	t.Stops = true
	a.each(func(part Limit) {
		of := part.Traits()
		t.Blocks, t.Distant, t.Silent = t.Blocks || of.Blocks, t.Distant || of.Distant, t.Silent || of.Silent
		t.Stops = t.Stops && of.Stops
	})
	return t
}

// Behind returns a Limit for a queue's door: it reserves by the door, and answers for what is behind it.
func Behind(by reserve.Reserver, limits ...Limit) Limit {
	return &door{all{Base{Reserver: by}, limits}}
}

// A door may keep its callers for others.
type door struct{ all }

func (d *door) Traits() Traits { return doorOf(d.all.Traits()) }

func doorOf(t Traits) Traits {
	t.Blocks, t.Distant = true, false
	return t
}

// Queues reports whether a Limit is the door of a queue, which lets a caller go when its context ends.
func Queues(l Limit) bool {
	_, one := l.(*door)
	_, of := l.(*choice)
	return one || of
}

// OneOf returns a Limit for the door of a queue in front of several limits, one of which a request needs. A stop holds
// at all.
func OneOf(by reserve.Reserver, limits ...Limit) Limit {
	return &choice{all{Base{Reserver: by}, limits}}
}

type choice struct{ all }

// Peek returns the least wait, or the error of one if none can serve the request.
func (c *choice) Peek(n int) (least time.Duration, err error) {
	found := false
	for _, part := range c.parts {
		wait, failed := part.Peek(n)
		if failed != nil {
			err = failed
		} else if !found || wait < least {
			found, least = true, wait
		}
	}
	if found {
		err = nil
	}
	return least, err
}

func (c *choice) Outlook() (o engine.Outlook, known bool) {
	o.Wait = math.MaxInt64
	for _, part := range c.parts {
		of, tells := part.Outlook()
		if !tells {
			return engine.Outlook{}, false
		}
		o.Rate, o.Stored, o.Capacity = o.Rate+of.Rate, o.Stored+of.Stored, max(o.Capacity, of.Capacity)
		o.Wait = min(o.Wait, of.Wait)
	}
	return o, len(c.parts) > 0
}

func (c *choice) Rate() (sum float64) {
	for _, part := range c.parts {
		rate := part.Rate()
		if rate == 0 {
			return 0
		}
		sum += rate
	}
	return sum
}

func (c *choice) Traits() Traits { return doorOf(c.all.Traits()) }
