package shared

import (
	"slices"
	"time"

	"github.com/nextfree/pace/internal/engine"

	"github.com/nextfree/pace/internal/smooth"
)

func (j *journal) load(saved []byte, then int64, of *rules) (engine.Ledger, error) {
	switch {
	case of.curve == nil:
		return j.terms.other.Load(of.saved, saved, then, wall)
	case saved == nil:
		return smooth.New(of.curve, then, of.curve.Capacity, of.upfront), nil
	default:
		return smooth.Load(of.curve, of.upfront, saved, then)
	}
}

// restore is load of what can be loaded: decode has tried, or a ledger has just written it.
func (j *journal) restore(saved []byte, then int64, of *rules) engine.Ledger {
	l, err := j.load(saved, then, of)
	if err != nil {
		panic(err)
	}
	return l
}

func (j *journal) replay(n int) engine.Ledger {
	l := j.restore(j.saved, j.then, j.rules)
	past := min(n, j.granted())
	j.apply(l, j.then, j.rules, j.records[:past])
	if past < j.granted() {
		return l
	}
	at := j.then
	for _, r := range j.using(past) {
		at = j.now
		l.Charge(at, int(r.amount))
	}
	if past < n {
		if past > 0 {
			at = max(at, j.records[past-1].at)
		}
		j.apply(l, at, j.rulesAfter(past), j.records[past:n])
	}
	return l
}

func (j *journal) apply(l engine.Ledger, at int64, of *rules, records []record) {
	for _, r := range records {
		switch r.kind {
		case granted:
			r.collect(l, j.collects(r, of, at))
		case used, ended:
			l.Charge(r.at, int(r.amount))
		case changed:
			if of = r.rules; of.curve != nil {
				l.(*smooth.Ledger).Adopt(r.at, of.curve, of.upfront)
			} else if c, ok := l.(engine.Changer); ok {
				c.Change(r.at, of.like)
			}
		case paused:
			l.Pause(r.at, r.at+r.amount)
		case stopped:
			if o, ok := l.(engine.Observer); ok {
				o.Stop(r.at, r.at+r.amount)
			} else {
				l.Pause(r.at, r.at+r.amount)
			}
		case resumed:
			l.Resume(r.at)
		}
		at = r.at
	}
}

// collect takes a granted request's permits, which it begins to hold then.
func (r *record) collect(l engine.Ledger, begin int64) {
	if begin >= r.at {
		l.Charge(r.at, int(r.amount))
		return
	}
	if early := r.at - ready(l, begin, int(r.amount)); early > 0 { // it waited for more, which has overflowed
		l.Pause(begin, max(begin, l.Paused())+early)
	}
	l.Reserve(begin, int(r.amount), never)
}

// collects returns when a request begins to hold permits: when granted. If it waits for its own permits and is
// larger than the capacity, when the bucket is full; with priced stored permits, at once.
func (j *journal) collects(r record, of *rules, earliest int64) int64 {
	switch {
	case !of.upfront:
		return r.at
	case !of.curve.Free():
		return max(earliest, r.at-r.since)
	case float64(r.amount) <= of.curve.Capacity:
		return r.at
	}
	return max(earliest, r.at-toWait((float64(r.amount)-of.curve.Capacity)*of.curve.Interval))
}

// tail returns the ledger behind all waiting requests. Permits given back before them are for requests that go at once.
func (j *journal) tail() engine.Ledger {
	if j.behind != nil {
		return j.behind
	}
	j.behind = j.replay(len(j.records))
	if j.gaps {
		j.empty(j.behind, j.from, j.newestGrant().amount)
	}
	return j.behind
}

// fits reports whether a request can go now without delaying others.
func (j *journal) fits(permits int) bool {
	if !j.gaps || !j.present().same(j.terms.rules) || ready(j.current, j.now, permits) > j.now {
		return false
	}
	at, of := j.now, j.present()
	l := j.restore(j.current.AppendState(nil, at), at, of)
	l.Reserve(at, permits, at)
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

func (j *journal) present() *rules { return j.rulesAfter(j.granted()) }

func (j *journal) rulesAfter(n int) *rules {
	for _, r := range slices.Backward(j.records[:n]) {
		if r.kind == changed {
			return r.rules
		}
	}
	return j.rules
}

func wall(t int64) time.Time { return time.Unix(0, t) }

// empty takes what has been stored while requests that wait could have gone, and went at their promised times, the
// newest of so many permits.
func (j *journal) empty(l engine.Ledger, at, newest int64) {
	switch {
	case j.terms.other != nil:
	case !j.terms.curve.Free():
		l.(*smooth.Ledger).Drain(at)
	default:
		left := l.Level(at)
		if !j.terms.upfront {
			left += float64(newest)
		}
		if left >= 1 {
			l.Charge(at, int(left))
		}
	}
}
