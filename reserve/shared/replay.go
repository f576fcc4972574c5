package shared

import (
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/smooth"
)

func (j *journal) restore(saved []byte, then int64, of limits) (reserve.Ledger, error) {
	var l reserve.Ledger
	var err error
	if t := j.terms; t.other != nil {
		l, err = t.other.Ledger(saved, then, wall)
	} else if curve := t.curveOf(of); saved == nil {
		return smooth.New(curve, then, curve.Capacity, t.upfront), nil
	} else {
		l, err = smooth.Load(curve, t.upfront, saved, then)
	}
	if err != nil {
		return nil, &StateError{Size: len(saved), Why: err.Error()}
	}
	return l, nil
}

// replay makes the ledger after the first n records.
func (j *journal) replay(n int) (reserve.Ledger, error) {
	l, err := j.restore(j.saved, j.then, j.limits)
	if err == nil {
		j.apply(l, j.then, j.limits, j.records[:n])
	}
	return l, err
}

func (j *journal) apply(l reserve.Ledger, at int64, of limits, records []record) {
	for _, r := range records {
		switch r.kind {
		case granted:
			if begin := j.collects(r, of, at); begin < r.at {
				l.Reserve(begin, int(r.amount), never)
			} else {
				l.Charge(r.at, int(r.amount))
			}
		case used:
			l.Charge(r.at, int(r.amount))
		case changed:
			l.(*smooth.Ledger).SetCurve(r.at, j.terms.curveOf(r.limits))
			of = r.limits
		case paused:
			l.Pause(r.at, r.at+r.amount)
		case resumed:
			l.Resume(r.at)
		}
		at = r.at
	}
}

// collects returns when a request begins to hold permits: when granted. If it waits for its own permits and is
// larger than the capacity, when the bucket is full; with priced stored permits, at once.
func (j *journal) collects(r record, of limits, earliest int64) int64 {
	switch {
	case !j.terms.upfront:
		return r.at
	case j.terms.line.Base > 0:
		return max(earliest, r.at-r.since)
	case float64(r.amount) <= of.capacity:
		return r.at
	}
	return max(earliest, r.at-toWait((float64(r.amount)-of.capacity)*smooth.Interval(of.rate)))
}

// tail returns the ledger behind all waiting requests. Permits given back before them are for requests that go at
// once: by the last one's time the store would have overflowed.
func (j *journal) tail() reserve.Ledger {
	if j.behind != nil {
		return j.behind
	}
	l, err := j.replay(len(j.records))
	if err != nil {
		panic(err) // it has been restored before
	}
	if j.gaps && j.terms.other == nil && j.terms.curve.Free() {
		left := l.Level(j.from)
		if !j.terms.upfront {
			left += float64(j.newestGrant().amount)
		}
		if left >= 1 {
			l.Charge(j.from, int(left))
		}
	}
	j.behind = l
	return l
}

// fits reports whether a request can go now without delaying others.
func (j *journal) fits(permits int) bool {
	if !j.gaps || j.terms.other == nil && j.present() != j.terms.limits() || ready(j.current, j.now, permits) > j.now {
		return false
	}
	l, err := j.restore(j.current.AppendState(nil, j.now), j.now, j.present())
	if err != nil {
		panic(err) // it has been saved this moment
	}
	l.Reserve(j.now, permits, j.now)
	at, of := j.now, j.present()
	for i, r := range j.records[j.granted():] {
		if r.kind != granted {
			j.apply(l, at, of, j.records[j.granted()+i:][:1])
		} else if _, _, ok := l.Reserve(j.collects(r, of, at), int(r.amount), r.at+1); !ok {
			return false
		}
		at = r.at
	}
	return true
}

// begun counts the records that the ledger of now knows: a waiting request's once it begins to hold permits.
func (j *journal) begun() int {
	n := j.granted()
	if n < len(j.records) && j.records[n].kind == granted && j.collects(j.records[n], j.present(), j.then) < j.now {
		n++
	}
	return n
}

func (j *journal) present() limits { return j.limitsAfter(j.granted()) }

// limitsAfter returns the limits after the first n records.
func (j *journal) limitsAfter(n int) limits {
	of := j.limits
	for _, r := range j.records[:n] {
		if r.kind == changed {
			of = r.limits
		}
	}
	return of
}

func wall(t int64) time.Time { return time.Unix(0, t) }
