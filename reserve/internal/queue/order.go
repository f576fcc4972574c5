package queue

import (
	"container/heap"
	"iter"
)

// An Order says which place is first. The queue calls it under its lock. It must not call the queue, nor block. Times
// are readings of the queue's clock, and never run back.
type Order interface {
	// Push adds a place, or says why it can't be added.
	Push(now int64, p *Place) error
	// Remove takes out a place that has not been granted.
	Remove(now int64, p *Place)
	// First returns which place goes if permits are free now, of those that others don't pass: see [Place.Passed]. Nil:
	// there is none.
	First(now int64) *Place
	// FirstOf is First among the places of the same group as p.
	FirstOf(now int64, p *Place) *Place
	// Grant takes out a place because it goes, and charges it.
	Grant(now int64, p *Place)
	// Resize says that a waiting place now asks for permits.
	Resize(now int64, p *Place, permits int)
	// Settle charges a granted place with so many permits more; negative: less.
	Settle(now int64, p *Place, more int)
	// Ahead returns the places that go before p if no other arrives.
	Ahead(now int64, p *Place) iter.Seq[*Place]
	// Above reports whether a goes before b whatever happens, unless it leaves, and Before returns the permits of all
	// that are above p.
	Above(a, b *Place) bool
	Before(now int64, p *Place) int
	// AtMost returns what all other places that might go before p, if no other arrives, ask of a limit, by its number in
	// the options.
	AtMost(now int64, p *Place, limit int) Total
	// Last reports whether all others certainly go before p, if no other arrives.
	Last(p *Place) bool
	// Changes returns when the first may change although no place arrives or leaves, or never.
	Changes(now int64) int64
	// Lapsed counts a place that the queue has refused after Push.
	Lapsed(now int64, p *Place)
}

// A lapseHeap holds places by the latest time at which they may go.
type lapseHeap []*Place

var _ heap.Interface = (*lapseHeap)(nil)

func (h lapseHeap) Len() int           { return len(h) }
func (h lapseHeap) Less(i, j int) bool { return h[i].latest() < h[j].latest() }
func (h lapseHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].lapse, h[j].lapse = i+1, j+1
}

func (h *lapseHeap) Push(p any) {
	*h = append(*h, p.(*Place))
	p.(*Place).lapse = len(*h)
}

func (h *lapseHeap) Pop() any {
	old := *h
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	p.lapse = 0
	return p
}
