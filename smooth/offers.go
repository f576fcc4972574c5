package smooth

import (
	"slices"
	"sort"
)

// A stretch is a stretch of time.
type stretch struct{ begin, end int64 }

// offer puts a stretch up for sale, and sets aside what has passed of it.
func (l *Ledger) offer(now int64, s stretch) {
	if s.begin < now {
		l.passed(l.worth(stretch{s.begin, min(s.end, now)}))
		s.begin = now
	}
	if s.begin < s.end {
		l.back.offer(s)
	}
}

// passed sets aside what time has earned that passed unsold.
func (l *Ledger) passed(permits float64) {
	l.inflow += permits
	l.back.aside += min(permits, l.vacant())
}

// passUnsold sets aside what has been for sale until now, and hands over what is
// aside when the debt is paid.
func (l *Ledger) passUnsold(now int64) {
	b := l.back
	if earned, over := b.unsold(now, l.curve.Refill); earned > 0 || over > 0 {
		l.passed(earned)
		b.offers = slices.Delete(b.offers, 0, over)
	}
	if len(b.offers) > 0 && b.offers[0].begin < now {
		b.offers[0].begin = now
	}
	if now >= l.next && b.aside > 0 {
		l.stored = min(l.stored+b.aside, l.curve.Capacity)
		b.aside, b.loans = 0, b.loans[:0]
	}
}

// unsold returns the permits that the time which passed unsold until now has earned,
// and how many offers are over.
func (b *back) unsold(now int64, refill float64) (earned float64, over int) {
	for _, o := range b.offers {
		if o.begin >= now {
			break
		}
		earned += float64(float64(min(o.end, now)-o.begin) * refill)
		if o.end <= now {
			over++
		}
	}
	return earned, over
}

// find returns the first offer in which a stretch of that length fits, the time from
// which on it is for sale, and its length from then; or -1.
func (b *back) find(now, length int64) (offer int, begin, room int64) {
	for i, o := range b.offers {
		begin = max(o.begin, now)
		room = o.end - begin
		// A nanosecond too short is long enough: it may be just the one that was
		// carried when this stretch was sold before, and is carried on now.
		if room > 0 && length-1 <= room {
			return i, begin, room
		}
	}
	return -1, 0, 0
}

// sellsAt reports whether there is an offer at that time.
func (b *back) sellsAt(now int64) bool {
	for _, o := range b.offers {
		if o.end > now {
			return o.begin <= now
		}
	}
	return false
}

// sell takes a stretch off the begin of an offer.
func (b *back) sell(offer int, end int64) {
	if o := &b.offers[offer]; end < o.end {
		o.begin = end
		return
	}
	b.offers = slices.Delete(b.offers, offer, offer+1)
}

// offer puts a stretch up for sale.
func (b *back) offer(s stretch) {
	i := sort.Search(len(b.offers), func(i int) bool { return b.offers[i].begin >= s.end })
	if i < len(b.offers) && b.offers[i].begin == s.end { // join the one behind
		s.end = b.offers[i].end
		b.offers = slices.Delete(b.offers, i, i+1)
	}
	if i > 0 && b.offers[i-1].end == s.begin { // and the one in front
		b.offers[i-1].end = s.end
		return
	}
	b.offers = slices.Insert(b.offers, i, s)
}
