package shared

import (
	"math"
	"time"

	"github.com/nextfree/pace/internal/engine"

	"github.com/nextfree/pace/internal/saturate"
)

func (j *journal) sell(w wanted) answer {
	if j.now > w.by { // its caller will have left
		w.limit = -1
	}
	latest := saturate.Add(j.now, w.limit)
	if j.behind != j.current && w.limit >= 0 && j.fits(w.permits) {
		j.current.Reserve(j.now, w.permits, j.now)
		j.behind = nil
		return j.promise(w, j.now, j.now)
	}
	_, ready, ok := j.tail().Reserve(j.from, w.permits, latest)
	if ready = max(ready, j.from); !ok || ready > latest {
		return answer{wait: max(1, ready-j.now)}
	}
	return j.promise(w, ready, j.from)
}

// hasten lets what is left of a request that waits go when it is free behind the requests before it.
func (j *journal) hasten(i int) {
	l, from, r := j.replay(i), j.now, &j.records[i]
	if i > 0 && j.records[i-1].at > from {
		from = j.records[i-1].at
		j.empty(l, from, j.records[i-1].amount)
	}
	if at := max(from, ready(l, from, int(r.amount))); at < r.at {
		r.at, r.since = at, min(r.since, at-from)
	}
}

func (j *journal) promise(w wanted, at, since int64) answer {
	r := record{at: at, kind: granted, amount: int64(w.permits)}
	if j.terms.upfront && j.terms.line.Base > 0 {
		r.since = at - since
	}
	number := j.add(r)
	return answer{
		granted: true, wait: at - j.now, slot: slot{record: number, permits: w.permits},
		unsure: at > j.now && j.unsure(w.uses),
	}
}

func (j *journal) wait(permits int) int64 {
	permits = min(permits, j.terms.most)
	if j.behind != j.current && j.fits(permits) {
		return 0
	}
	return max(0, max(ready(j.tail(), j.from, permits), j.from)-j.now)
}

func (j *journal) look() outlook {
	o := outlook{wait: j.wait(1), stored: j.current.Stored(j.now), level: j.current.Level(j.now)}
	if j.behind != j.current {
		for _, r := range j.records[j.begun():] {
			if r.kind == granted {
				o.level -= float64(r.amount)
			}
		}
		if o.stored = 0; j.terms.line.Base > 0 {
			o.stored = j.tail().Stored(j.from)
		}
	}
	if o.queued = o.wait > 0; !o.queued || j.terms.upfront && j.behind == j.current {
		o.left = o.stored
	}
	return o
}

// keep returns how long the journal is needed: until all is paid, and the store is full, for the slowest terms that it
// has had, too. For a window and a calendar that is three lengths, and one more for each that the requests use up.
func (j *journal) keep(wait int64) time.Duration {
	of := j.terms.curve
	length := max(of.Capacity/of.Rate*1e9, float64(j.slowest))
	d := float64(wait) + length + 1e9
	if j.terms.other != nil {
		sum := 0.0
		for _, r := range j.records {
			if r.has() || r.kind == used {
				sum += float64(r.amount)
			}
		}
		d += length * (2 + sum/of.Capacity)
	}
	if j.uses {
		d += float64(forgetUse)
	}
	return time.Duration(min(d, longest))
}

func ready(l engine.Ledger, at int64, permits int) int64 {
	_, ready, _ := l.Reserve(at, permits, math.MinInt64) // nothing is ready then, so it takes nothing
	return ready
}
