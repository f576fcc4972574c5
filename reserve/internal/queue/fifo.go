package queue

import "iter"

// FIFO is the order first come, first served. A place that asks again has its old number: see [Rank]. The zero value is
// empty.
type FIFO struct {
	head, tail *Place
	sums       Sums
}

// Push adds a place behind those with a smaller number.
func (f *FIFO) Push(now int64, p *Place) error {
	p.Join(now)
	for p.next, p.previous = nil, f.tail; p.previous != nil && p.previous.rank.Number > p.rank.Number; p.previous = p.previous.previous {
		p.next = p.previous
	}
	if p.previous == nil {
		f.head = p
	} else {
		p.previous.next = p
	}
	if p.next == nil {
		f.tail = p
	} else {
		p.next.previous = p
	}
	f.sums.Add(p)
	return nil
}

// Remove takes out a place.
func (f *FIFO) Remove(_ int64, p *Place) {
	if p.previous == nil {
		f.head = p.next
	} else {
		p.previous.next = p.next
	}
	if p.next == nil {
		f.tail = p.previous
	} else {
		p.next.previous = p.previous
	}
	p.next, p.previous = nil, nil
	f.sums.Remove(p)
}

// First returns the first place that others don't pass.
func (f *FIFO) First(int64) *Place {
	p := f.head
	for p != nil && p.Passed() != NoPass {
		if p.Passed() == PassGroup {
			return nil
		}
		p = p.next
	}
	return p
}

// FirstOf returns the first place: all are in one group.
func (f *FIFO) FirstOf(now int64, _ *Place) *Place { return f.First(now) }

// Ahead returns the places before p.
func (f *FIFO) Ahead(_ int64, p *Place) iter.Seq[*Place] {
	return func(yield func(*Place) bool) {
		for other := f.head; other != nil && other != p && yield(other); other = other.next {
		}
	}
}

// Above always returns false: any place may leave.
func (f *FIFO) Above(*Place, *Place) bool { return false }

// Before returns 0, and AtMost what all other places ask.
func (f *FIFO) Before(int64, *Place) int { return 0 }
func (f *FIFO) AtMost(_ int64, p *Place, limit int) Total {
	return p.Without(f.sums.Of(limit), limit)
}
func (f *FIFO) Last(p *Place) bool              { return p.next == nil }
func (f *FIFO) Grant(now int64, p *Place)       { f.Remove(now, p) }
func (f *FIFO) Resize(_ int64, p *Place, n int) { f.sums.Resize(p, n) }
func (f *FIFO) Settle(int64, *Place, int)       {}
func (f *FIFO) Lapsed(int64, *Place)            {}
func (f *FIFO) Changes(int64) int64             { return never }
