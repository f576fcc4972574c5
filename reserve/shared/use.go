package shared

import (
	"slices"
	"time"

	"github.com/nextfree/pace/internal/engine"
)

// A window and a quota by the calendar count permits until their use ends: the record of the request moves to that time
// (ended). While a use goes on (begun), its permits count as of now, and its record has the time of the latest word of
// it. The beginning is told only if a use lasts: until then the permits count by their grant. A promise made while
// permits are in use comes true if they come back at once, so a request asks again when its time has come.

const (
	tellUse   = 250 * time.Millisecond // a use that lasts for so long is told, and again each renewUse
	renewUse  = 20 * time.Second
	forgetUse = time.Minute // after the latest word of it, a use is over: its process was killed
)

// A told is what a process tells of a use, at a time of the limiter's clock.
type told struct {
	record uint64
	at     int64
	over   bool
}

// A useAged is the same, age nanoseconds ago.
type useAged struct {
	record uint64
	age    int64
	over   bool
}

// recent is how long a process takes at most to tell of a use.
const recent = 8 * tellUse

func (j *journal) use(u useAged) (written bool) {
	i := slices.IndexFunc(j.records, func(r record) bool { return r.number == u.record })
	if i < 0 || j.records[i].kind != granted && j.records[i].kind != begun {
		return false
	}
	r := j.records[i]
	if r.at = min(max(j.now-u.age, r.at), j.now); u.over {
		r.kind = ended
	} else {
		r.kind = begun
	}
	j.uses = true
	j.move(i, r)
	return true
}

func (j *journal) move(i int, r record) {
	j.records = slices.Delete(j.records, i, i+1)
	j.records = slices.Insert(j.records, j.upTo(r.at), r)
}

func (j *journal) forget() {
	for i, r := range j.records {
		if r.kind == begun && j.now-r.at > int64(forgetUse) {
			r.kind, r.at = ended, r.at+int64(forgetUse)
			j.move(i, r)
			j.forget()
			return
		}
	}
}

// open reports whether a use of a request's permits may go on.
func (j *journal) open(r record) bool {
	return r.kind == begun || r.kind == granted && r.at <= j.now && r.at > j.now-int64(recent)
}

// unsure reports whether a use may still make a promise later.
func (j *journal) unsure(uses bool) bool {
	return (uses || j.uses) && slices.ContainsFunc(j.records, j.open)
}

// settled counts, of the first n records, those before the first of whose use nothing may have been told yet: they can
// become part of the saved ledger.
func (j *journal) settled(n int) int {
	if j.uses {
		if i := slices.IndexFunc(j.records[:n], func(r record) bool { return r.kind == granted && j.open(r) }); i >= 0 {
			return i
		}
	}
	return n
}

func (j *journal) using(n int) (going []record) {
	for _, r := range j.records[:n] {
		if r.kind == begun {
			going = append(going, r)
		}
	}
	return going
}

func tracks(l engine.Ledger) bool {
	_, yes := l.(engine.UseTracker)
	return yes
}
