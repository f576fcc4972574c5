package queue

import "iter"

// An Order says which place is first. The queue calls it under its lock: it must not call the queue, nor block. Time
// never runs back.
type Order interface {
	// Push adds a place, or returns why not.
	Push(now int64, p *Place) error
	// Remove takes out a place that is not granted.
	Remove(now int64, p *Place)
	// First returns the place that goes if permits are free now, but for places that others pass; or nil.
	First(now int64) *Place
	// FirstOf is First in the group of p.
	FirstOf(now int64, p *Place) *Place
	// Grant takes out a place that goes, and charges it.
	Grant(now int64, p *Place)
	// Resize makes a waiting place ask for that many permits.
	Resize(now int64, p *Place, permits int)
	// Settle charges a granted place with more permits; negative: fewer.
	Settle(now int64, p *Place, more int)
	// Ahead returns the places that go before p if no other arrives.
	Ahead(now int64, p *Place) iter.Seq[*Place]
	// Certain reports whether first goes before p unless it leaves, with the permits of all such places.
	Certain(now int64, first, p *Place) (permits int, ok bool)
	// AtMost returns what all places that may go before p, if no other arrives, ask of a limit; and whether all of them
	// go before p.
	AtMost(now int64, p *Place, limit int) (sum Total, exact bool)
	// Changes returns when the first may change although no place comes or goes, or never.
	Changes(now int64) int64
	// Lapsed counts a place that the queue has refused after Push.
	Lapsed(now int64, p *Place)
}
