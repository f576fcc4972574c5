package late

import (
	"iter"
)

// FIFO is the order first come, first served. The zero value is empty.
type FIFO struct {
	head, tail *link
	permits    int
}

// A link is a place in the list. It is its Data.
type link struct {
	place          *Place
	next, previous *link
}

// Push adds a place at the end.
func (f *FIFO) Push(_ int64, p *Place) error {
	l := &link{place: p, previous: f.tail}
	p.Data = l
	if f.tail == nil {
		f.head = l
	} else {
		f.tail.next = l
	}
	f.tail = l
	f.permits += p.Permits
	return nil
}

// Remove takes out a place.
func (f *FIFO) Remove(_ int64, p *Place) {
	l := p.Data.(*link)
	if l.previous == nil {
		f.head = l.next
	} else {
		l.previous.next = l.next
	}
	if l.next == nil {
		f.tail = l.previous
	} else {
		l.next.previous = l.previous
	}
	p.Data = nil
	f.permits -= p.Permits
}

// First returns the first place.
func (f *FIFO) First(int64, int) *Place {
	if f.head == nil {
		return nil
	}
	return f.head.place
}

// Ahead returns the places before p.
func (f *FIFO) Ahead(_ int64, p *Place) iter.Seq[*Place] {
	return func(yield func(*Place) bool) {
		for l := f.head; l != nil && l.place != p && yield(l.place); l = l.next {
		}
	}
}

// Above reports that a place may leave before any other: it says nothing.
func (f *FIFO) Above(*Place, *Place) bool { return false }

// Before returns 0, and AtMost the permits of all other places.
func (f *FIFO) Before(int64, *Place) int        { return 0 }
func (f *FIFO) AtMost(_ int64, p *Place) int    { return f.permits - p.Permits }
func (f *FIFO) Grant(now int64, p *Place)       { f.Remove(now, p) }
func (f *FIFO) Resize(_ int64, p *Place, n int) { f.permits += n - p.Permits }
func (f *FIFO) Settle(int64, *Place, int)       {}
func (f *FIFO) Lapsed(int64, *Place)            {}
func (f *FIFO) Changes(int64) int64             { return never }
