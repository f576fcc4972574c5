package shared

import (
	"cmp"
	"slices"
	"time"

	"github.com/nextfree/pace/internal/engine"

	"github.com/nextfree/pace/internal/saturate"
)

// A journal is the state of a limiter in a [Store]: a saved ledger and the records since. A new request goes at once if
// it delays no promise, otherwise after the last waiting request. Times are nanoseconds on the store's clock.
type journal struct {
	terms   *terms
	saved   []byte // AppendState's, at then; nil: a new ledger's
	then    int64
	rules   *rules // the ledger's, then
	last    int64  // when the journal was written
	newest  uint64 // number of a record
	uses    bool   // uses are told
	gaps    bool   // something was given back while others wait
	slowest int64  // how long the slowest terms that it has had need to fill, if that is longer than the present ones do
	records []record

	// While it decides.
	now     int64
	current engine.Ledger // now, without the requests that wait
	behind  engine.Ledger // behind these, as of from; the same as current if no request waits
	from    int64         // when the last of them is granted
}

// mostAmount has 60 bits, as a saved record has room for: a pause of 36 years.
const mostAmount = 1<<60 - 1

type record struct {
	at     int64
	number uint64
	kind   kind
	amount int64  // permits, or nanoseconds of a pause
	rules  *rules // of a changed record
	since  int64  // so long a request waits for its own permits, if stored ones have a price
}

type kind byte

const (
	granted kind = iota // the permits of a request, at the time that it was promised
	used                // permits that were used without a promise
	changed             // other terms
	paused
	resumed
	begun    // granted, and in use: see use.go
	ended    // the same, and the use is over
	stopped  // a pause in which permits leave a window
	lastKind = stopped
)

const (
	// mostRecords are kept (2.5 KB). Above that, the oldest become part of the saved ledger, down to keptRecords.
	mostRecords, keptRecords = 512, 384
	// slack is how far the clocks of the processes may differ, where the store has none.
	slack = int64(500 * time.Millisecond)
)

func (j *journal) decide(o *order, now int64) (written bool, keep time.Duration) {
	written = j.setClock(now)
	written = j.change(o) || written
	j.begin(len(o.asked))
	for _, w := range o.asked {
		a := j.sell(w)
		written = written || a.granted
		o.answers = append(o.answers, a)
	}
	o.after = j.look()
	for i, w := range o.asked {
		if w.look {
			o.answers[i].again = j.wait(w.permits)
		}
	}
	j.last = j.now
	return written, j.keep(o.after.wait)
}

// change does what an order does beside asking.
func (j *journal) change(o *order) (changed bool) {
	changed = o.next != nil || o.pause != 0 || len(o.charges) > 0
	for i := range o.refunds {
		changed = j.giveBack(&o.refunds[i]) || changed
	}
	for _, u := range o.uses {
		changed = j.use(u) || changed
	}
	j.closeUp()
	for _, t := range []*terms{o.terms, o.next} {
		changed = t != nil && j.adopt(t) || changed
	}
	j.pause(o.pause, o.stop)
	for _, c := range o.charges {
		j.charge(c)
	}
	return changed
}

func (j *journal) setClock(now int64) (back bool) {
	by := j.last - now
	if j.now = max(now, j.last); by <= slack {
		return false
	}
	j.fold(j.granted(), j.last)
	for i := range j.records {
		j.records[i].at -= by
	}
	j.now, j.then = now, now
	return true
}

func (j *journal) upTo(at int64) int {
	n := len(j.records)
	for n > 0 && j.records[n-1].at > at {
		n--
	}
	return n
}

func (j *journal) granted() int { return j.upTo(j.now) }

func (j *journal) giveBack(r *refund) (written bool) {
	j.gaps, r.wait = j.gaps || j.lastGrant() > j.now, never
	i := slices.IndexFunc(j.records, func(of record) bool { return of.number == r.slot.record })
	if i < 0 || !j.records[i].has() {
		return false
	}
	of := &j.records[i]
	if of.amount -= int64(r.permits); of.amount <= 0 {
		j.records = slices.Delete(j.records, i, i+1)
	} else if of.at > j.now {
		j.hasten(i)
		r.wait = j.records[i].at - j.now
	}
	return true
}

func (r *record) has() bool { return r.kind == granted || r.kind == begun || r.kind == ended }

func (j *journal) add(r record) uint64 {
	j.newest++
	r.number, r.amount = j.newest, min(r.amount, mostAmount)
	j.records = slices.Insert(j.records, j.upTo(r.at), r)
	return r.number
}

func (j *journal) newestGrant() record {
	for _, r := range slices.Backward(j.records) {
		if r.kind == granted {
			return r
		}
	}
	return record{}
}

func (j *journal) lastGrant() int64 { return max(j.now, j.newestGrant().at) }

// closeUp moves records behind the last waiting request.
func (j *journal) closeUp() {
	from, moved := j.lastGrant(), false
	for i := range j.records {
		if r := &j.records[i]; r.at > from && (r.kind == changed || r.kind == used) {
			r.at, moved = from, true
		}
	}
	if moved {
		slices.SortStableFunc(j.records, func(a, b record) int { return cmp.Compare(a.at, b.at) })
	}
}

// adopt leaves waiting requests their times and costs: those of a bucket know nothing of the change until they go.
func (j *journal) adopt(t *terms) (differ bool) {
	j.terms = t
	before := j.rulesAfter(len(j.records))
	if differ = !t.rules.same(before); !differ {
		return false
	}
	j.slowest = max(j.slowest, before.fill())
	at := j.now
	if t.other == nil {
		at = j.lastGrant()
	}
	j.add(record{at: at, kind: changed, rules: t.rules})
	return true
}

func (j *journal) pause(d int64, stop bool) {
	switch {
	case d > 0 && stop:
		j.add(record{at: j.now, kind: stopped, amount: d})
	case d > 0:
		j.add(record{at: j.now, kind: paused, amount: d})
	case d == resume:
		j.add(record{at: j.now, kind: resumed})
	case d == reset:
		j.saved, j.then, j.rules, j.records, j.slowest = nil, j.now, j.terms.rules, j.records[:0], 0
	}
}

// charge charges permits as of their use; while requests wait, behind these, since nothing can overflow.
func (j *journal) charge(c charge) {
	if c.bounded {
		room := j.replay(j.begun()).Level(j.now) + mostOwed*max(1, j.terms.curve.Capacity)
		if c.permits = int(min(float64(c.permits), room)); c.permits <= 0 {
			return
		}
	}
	at := max(j.then, saturate.Add(j.now, -c.age))
	if from := j.lastGrant(); from > j.now && j.terms.other == nil {
		at = from
	}
	j.add(record{at: at, kind: used, amount: int64(c.permits)})
}

func (j *journal) begin(more int) {
	j.forget()
	n := j.settled(j.granted())
	if over := len(j.records) + more - mostRecords; over > 0 {
		if over = min(n, over+mostRecords-keptRecords); over > 0 {
			j.fold(over, j.records[over-1].at)
		}
	}
	j.from, j.behind, j.current = j.lastGrant(), nil, j.replay(j.begun())
	if j.from == j.now {
		j.behind, j.gaps = j.current, false
		full := j.terms.curve.Capacity
		if len(j.records) > 0 && j.current.Stored(j.now) >= full && j.wait(1) == 0 {
			j.fold(len(j.records), j.now) // it is full, so a refund is worth nothing
		}
	}
}

func (j *journal) fold(n int, at int64) {
	l, going := j.replay(n), j.using(n)
	j.saved, j.then, j.rules = l.AppendState(nil, at), at, j.rulesAfter(n)
	j.records = slices.Delete(j.records, 0, n)
	for _, r := range going {
		r.at = max(r.at, at)
		j.records = slices.Insert(j.records, j.upTo(r.at), r)
	}
}
