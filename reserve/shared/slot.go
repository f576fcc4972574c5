package shared

import "math"

type state struct {
	time         float64 // the limiter's own, in microseconds
	slot         float64 // the number at the end of the queue
	stored, debt float64 // permits; nanoseconds
	deferred     float64 // permits that may be used at once in spite of the debt
}

// sell repeats the script's steps for a granted request: their results are not sent.
func (s *state) sell(t *terms, permits int, wait int64) slot {
	sold := slot{sold: s.time, permits: permits, terms: t}
	taken, cost := t.curve.Price(s.stored, float64(permits))
	due := s.debt
	if t.upfront {
		due += cost - t.ahead
	}
	if wait == 0 && roundUp(due) > 0 { // what was deferred
		sold.deferred = true
		s.deferred -= float64(permits)
		return sold
	}
	sold.begin, sold.stored = s.debt, s.stored
	s.stored -= taken
	s.debt = min(s.debt+cost, longest)
	if cost > 0 {
		s.slot++
		sold.number = s.slot
	}
	return sold
}

func (s *state) wait(t *terms, permits int) int64 {
	if s.deferred >= float64(permits) {
		return 0
	}
	wait := s.debt
	if t.upfront {
		_, cost := t.curve.Price(s.stored, float64(permits))
		wait += cost - t.ahead
	}
	return toWait(max(0, wait))
}

func (s *state) outlook(t *terms) outlook {
	o := outlook{stored: s.stored, level: s.stored + s.deferred, left: s.stored, wait: s.wait(t, 1), queued: s.debt > 0}
	if o.queued {
		if o.left = s.deferred; t.curve.Interval > 0 {
			o.level = s.deferred - s.debt/t.curve.Interval
		}
	}
	return o
}

const longest = 9.2e18

func roundUp(nanoseconds float64) float64 { return math.Ceil(nanoseconds - 1e-3) }

func toWait(wait float64) int64 {
	if wait >= longest {
		return math.MaxInt64
	}
	return int64(roundUp(wait))
}

// A slot is what a refund needs: in a journal a record's number, in Redis a stretch of time.
type slot struct {
	record   uint64
	permits  int     // all of them
	number   float64 // at the end of the queue then; 0 if it cost no time
	sold     float64 // by the state's time, in microseconds
	deferred bool    // had at once, in spite of a debt
	begin    float64 // the debt right before the sale
	stored   float64 // in the store then
	terms    *terms
	others   int // permits of other parts of the same sale, which others give back
}

// A refund is the last permits of a slot.
type refund struct {
	slot    slot
	permits int   // more than 0
	wait    int64 // the answer: the other permits may be used then; never: no sooner than they were promised
}

func (r refund) rest() slot {
	s := r.slot
	s.permits -= r.permits
	s.others += r.permits
	if t := s.terms; t != nil && t.upfront && !s.deferred { // the script keeps the end of its stretch
		_, cost := t.curve.Price(s.stored, float64(r.slot.permits))
		_, less := t.curve.Price(s.stored, float64(s.permits))
		s.begin += cost - less
	}
	return s
}

// moves reports whether what is left waits for its own permits, which are fewer now.
func (r refund) moves() bool {
	s := r.slot
	return s.terms.upfront && !s.deferred && s.others == 0 && s.permits > r.permits
}

func (r refund) waits(now float64) int64 {
	if !r.moves() {
		return never
	}
	s := r.slot
	_, paid := s.terms.curve.Price(s.stored, float64(s.permits-r.permits))
	return toWait(max(0, (s.sold-now)*1000+s.begin+paid-s.terms.ahead))
}

// A comeback is a refund in today's terms. Times are nanoseconds.
type comeback struct {
	number, sold  float64
	begin, length float64 // the stretch of the queue, from the sale
	ready         float64 // when the request may have been granted
	kept          float64 // permits that came out of the store
	worth         float64 // permits that a nanosecond of the stretch stores
	whole         float64 // 1 if nothing is left of the slot
	paid          float64 // the part of the stretch that is left; 0 if that can't move to its beginning
	most          float64 // permits that come back at most after that
}

func (r refund) comeback(now *terms) comeback {
	s, then := r.slot, r.slot.terms
	keep := s.permits - r.permits
	c := comeback{
		number: s.number, sold: s.sold, begin: s.begin, ready: s.begin, most: math.Inf(1),
		kept: float64(r.permits), worth: min(now.curve.Refill, then.curve.Refill),
	}
	if keep+s.others == 0 {
		c.whole = 1
	}
	if !s.deferred {
		taken, cost := then.curve.Price(s.stored, float64(s.permits))
		stays, paid := then.curve.Price(s.stored, float64(keep))
		cost = min(cost, longest-s.begin)
		c.kept, c.length = taken-stays, max(0, cost-paid)
		switch {
		case !then.upfront:
			c.begin += paid
		case r.moves():
			c.paid = paid
		case c.whole == 0:
			c.number = -c.number
		}
		if then.upfront {
			c.ready += cost - then.ahead
		}
	}
	used := float64(keep + s.others)
	switch {
	case now == then:
	case now.unlimited() || then.unlimited():
		c.kept = 0
	default:
		by := then.scale(now)
		c.kept, used = c.kept*by, used*by
	}
	if now.upfront && !now.unlimited() { // of a request that was larger than the capacity no more is left
		c.most = max(0, now.curve.Capacity-used)
	}
	return c
}

// scale returns what a stored permit becomes under other terms: see machine.lua.
func (t *terms) scale(now *terms) float64 {
	switch from, to := t.curve, now.curve; {
	case from.Free() && to.Free() && (from.Fixed || to.Fixed):
		return 1
	case from.Free() && to.Free():
		return min(to.Refill/from.Refill, math.MaxFloat64)
	case from.Capacity == 0:
		return 0
	default:
		return min(to.Capacity/from.Capacity, math.MaxFloat64)
	}
}
