package queue

import "iter"

// FIFO is the order first come, first served. The zero value is empty.
type FIFO struct {
	List
	Sums
}

// Push adds a place behind those with a smaller number: see [Rank].
func (f *FIFO) Push(now int64, p *Place) error {
	p.join(now)
	f.Insert(p)
	f.Add(p)
	return nil
}

func (f *FIFO) Remove(_ int64, p *Place) {
	f.Delete(p)
	f.Subtract(p)
}

func (f *FIFO) First(int64) *Place {
	for p := f.head; p != nil && p.Passed() != PassGroup; p = f.Next(p) {
		if p.Passed() == NoPass {
			return p
		}
	}
	return nil
}

// FirstOf is First: all are in one group.
func (f *FIFO) FirstOf(now int64, _ *Place) *Place { return f.First(now) }

func (f *FIFO) Ahead(_ int64, p *Place) iter.Seq[*Place] {
	return func(yield func(*Place) bool) {
		for other := f.head; other != nil && other != p && yield(other); other = f.Next(other) {
		}
	}
}

// AtMost returns what all other places ask; it is exact for the last.
func (f *FIFO) AtMost(_ int64, p *Place, limit int) (Total, bool) {
	return p.Without(f.Of(limit), limit), p == f.tail
}

func (f *FIFO) Certain(int64, *Place, *Place) (int, bool) { return 0, false }
func (f *FIFO) Grant(now int64, p *Place)                 { f.Remove(now, p) }
func (f *FIFO) Settle(int64, *Place, int)                 {}
func (f *FIFO) Lapsed(int64, *Place)                      {}
func (f *FIFO) Changes(int64) int64                       { return never }
