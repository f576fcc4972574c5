package conform

import (
	"fmt"
	"math"
	"sort"
	"time"
)

// look compares all that can be asked.
func (j *judge) look() {
	if j.over() {
		return
	}
	j.forget()
	times := j.model.Times()
	for i, t := range j.tickets {
		if t.tried || t.permits == 0 {
			continue
		}
		at := j.subject.at(t.subject)
		what := fmt.Sprintf("#%d goes at", i)
		j.compare(what, at, times[t.model], true)
		j.keeps(what, t, at)
	}
	j.compare("next free", j.subject.nextFree(), j.model.NextFree(), false)
	if j.model.Quiet() || j.kind.warm != nil { // otherwise what is stored is spoken for
		got, want := j.subject.stored(), j.model.Stored()
		excess := (got - want) * j.model.Interval() // as a time
		if slack := float64(j.slack()) + 1 + 1e-9*(1+want)*j.model.Interval(); math.Abs(excess) > slack {
			what := fmt.Sprintf("stored %v, the model has %v; lacking, as a time", got, want)
			j.compare(what, time.Duration(-excess), 0, false)
		}
	} else if got := j.subject.stored(); !j.kind.upfront && !j.model.Paused() && got > 0 {
		j.early = fmt.Sprintf("%v permits are stored, while a request waits", got)
	}
}

// forget marks the tickets of a key whose limiter is as good as new: what a warming-up limiter is given back after that
// makes it colder, unless it was forgotten.
func (j *judge) forget() {
	if _, ok := j.subject.(*keySubject); !ok || j.kind.warm == nil || j.model.Stored() < j.kind.model().Full() {
		return
	}
	for _, t := range j.tickets {
		t.forgotten = true
	}
}

// keeps checks what holds whatever the model says. No promised time becomes later, but for rounding: a nanosecond, and
// more after a change of the rate, when amounts are scaled. No granted request is called back.
func (j *judge) keeps(what string, t *ticket, at time.Duration) {
	rounding := min(1, j.slack())
	if !j.constant {
		rounding = j.slack()
	}
	if (at-rounding > t.at || t.gone && at > j.now) && j.early == "" {
		j.early = fmt.Sprintf("%s %v, after a promise of %v", what, at, t.at)
	}
	t.at = at
	t.gone = t.gone || at <= j.now
}

// limiterTime is a time without the pauses before it.
func (j *judge) limiterTime(at time.Duration) time.Duration {
	end, sum := time.Duration(0), time.Duration(0)
	for _, p := range j.pauses {
		if from, to := max(p.from, end), min(p.to, at); from < to {
			sum += to - from
			end = to
		}
	}
	return at - sum
}

// invariant compares each two granted requests. Of what was not given back, no more goes in any stretch than the store
// holds and the rate gives. The last request's own permits are excepted: the requests behind it pay for them. Paid
// upfront they count, and the first one may be larger than the store.
func (j *judge) invariant() {
	if !j.constant || j.early != "" {
		return
	}
	var used []*ticket
	for _, t := range j.tickets {
		if t.permits > 0 {
			used = append(used, t)
		}
	}
	sort.SliceStable(used, func(a, b int) bool { return used[a].at < used[b].at })
	for i, first := range used {
		sum := 0
		for _, last := range used[i:] {
			passed := j.limiterTime(last.at) - j.limiterTime(first.at) + j.slack() + 2
			limit := j.kind.capacity() + float64(passed)/j.kind.interval() + 1e-6
			if j.kind.upfront {
				sum += last.permits
				limit = max(limit, limit-j.kind.capacity()+float64(first.permits))
			}
			if float64(sum) > limit {
				j.early = fmt.Sprintf("%d permits go from %v to %v, where %.3f are allowed", sum, first.at, last.at, limit)
				return
			}
			if !j.kind.upfront {
				sum += last.permits
			}
		}
	}
}
