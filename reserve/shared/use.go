package shared

import (
	"cmp"
	"slices"
	"time"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/smooth"
)

// A server counts a call between its sending and its answer. So a window and a quota by the calendar count permits until
// their use ends, and the journal has a record of each use: when it was told last that it goes on (begun), or when it
// ended. The end is told by a call of its own, which no caller waits for, and the beginning only if a use lasts: until
// then the permits count by their grant. What is promised while permits are in use is what is known then: it comes true
// if they come back at once. So a request asks again when its time has come.

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

// tracker is a ledger that counts by use, and numbers its requests.
type tracker interface {
	reserve.UseTracker
	Newest() uint64
}

func (r *record) uses() uint64 { return r.number - uint64(r.amount) }
func (r *record) isUse() bool  { return r.kind == begun || r.kind == ended }

// use writes a use of a record that is still there.
func (j *journal) use(u useAged) (written bool) {
	i := slices.IndexFunc(j.records, func(r record) bool { return r.number == u.record && r.kind == granted })
	if i < 0 || j.isOver(u.record) {
		return false
	}
	j.dropUse(u.record)
	kind := begun
	if u.over {
		kind = ended
	}
	at := min(max(j.now-u.age, j.records[i].at), j.now)
	j.add(record{at: at, kind: kind, amount: int64(j.newest + 1 - u.record)})
	return true
}

func (j *journal) isOver(number uint64) bool {
	return slices.ContainsFunc(j.records, func(r record) bool { return r.kind == ended && r.uses() == number })
}

func (j *journal) dropUse(number uint64) {
	j.records = slices.DeleteFunc(j.records, func(r record) bool { return r.isUse() && r.uses() == number })
}

// used reports whether uses are told.
func (j *journal) used() bool {
	return slices.ContainsFunc(j.records, func(r record) bool { return r.isUse() })
}

// forget ends uses of which nothing was heard for long.
func (j *journal) forget() {
	some := false
	for i := range j.records {
		if r := &j.records[i]; r.kind == begun && j.now-r.at > int64(forgetUse) {
			r.kind, r.at, some = ended, r.at+int64(forgetUse), true
		}
	}
	if some {
		slices.SortStableFunc(j.records, func(a, b record) int { return cmp.Compare(a.at, b.at) })
	}
}

// unsure reports whether a use may still make a promise later.
func (j *journal) unsure(uses bool) bool {
	return (uses || j.used()) && j.firstOpen(len(j.records)) < len(j.records)
}

// settled returns how many of the first n records can become part of the saved ledger: those before the first one
// whose use may go on, or end behind them.
func (j *journal) settled(n int) int {
	if !j.used() {
		return n
	}
	return min(n, j.firstOpen(n))
}

// firstOpen returns the number of granted records among the first n before one whose use is not over in them.
func (j *journal) firstOpen(n int) int {
	var over map[uint64]bool
	for _, r := range j.records[:n] {
		if r.isUse() {
			if over == nil {
				over = map[uint64]bool{}
			}
			over[r.uses()] = r.kind == ended
		}
	}
	recent := j.now - 8*int64(tellUse)
	for i, r := range j.records[:n] {
		if ended, told := over[r.number]; r.kind == granted && (told && !ended || !told && r.at > recent) {
			return i
		}
	}
	return n
}

// inUse are the slots of records with a use while a journal is replayed. Nil: none is told.
type inUse struct {
	by   tracker
	told map[uint64]bool // records with a use
	out  map[uint64]smooth.Slot
}

// replayUses applies the first n records. A use that goes on counts until now.
func (j *journal) replayUses(l reserve.Ledger, n int) {
	by, tracks := l.(tracker)
	if !tracks || !j.used() {
		j.apply(l, nil, j.then, j.rules, j.records[:n])
		return
	}
	u := &inUse{by: by, told: map[uint64]bool{}, out: map[uint64]smooth.Slot{}}
	for _, r := range j.records {
		if r.isUse() {
			u.told[r.uses()] = true
		}
	}
	past := min(n, j.granted())
	j.apply(l, u, j.then, j.rules, j.records[:past])
	if past < j.granted() {
		return
	}
	for _, r := range j.records[:past] { // in their order
		u.end(j.now, r.number)
	}
	if past < n {
		j.apply(l, nil, j.now, j.rulesAfter(past), j.records[past:n])
	}
}

func (u *inUse) begin(r record) {
	if u != nil && u.told[r.number] {
		u.out[r.number] = u.by.Begin(r.at, smooth.Slot{Number: u.by.Newest(), Permits: int(r.amount)})
	}
}

func (u *inUse) end(at int64, number uint64) {
	if u == nil {
		return
	}
	if slot, out := u.out[number]; out {
		u.by.End(at, slot)
		delete(u.out, number)
	}
}

var _ engine.UseTracker = (tracker)(nil)
