package shared

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
	"time"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
	"github.com/nextfree/pace/smooth"
)

// A book is the policy of a window, of a quota by the calendar, or of any ledger that is not package smooth's and can
// be saved.
type book struct {
	kind     string // the variant's package
	limiter  string // what errors call it
	rate     float64
	capacity float64
	most     int // the largest request that is ever granted; 0: any
	policy   *reserve.Policy
}

// newBook returns the book of a policy, and a curve for what only needs its rate and capacity: what a process owes
// after an outage.
func newBook(p *reserve.Policy) (*book, *smooth.Curve, error) {
	const epoch = int64(1e18)
	ledger, err := (*engine.Policy)(p).Ledger(nil, epoch, func(t int64) time.Time { return time.Unix(0, t) })
	if err != nil {
		return nil, nil, err
	}
	l, ok := ledger.(stored)
	if !ok {
		return nil, nil, &CurveError{Why: "its ledger can't be saved"}
	}
	b := &book{policy: p, rate: l.Rate(), capacity: l.Stored(epoch)}
	b.kind, b.limiter = (*engine.Policy)(p).Kind()
	if _, largest := l.Size(); largest < math.MaxInt {
		b.most = largest
	}
	curve := &smooth.Curve{Rate: b.rate, Capacity: b.capacity, Interval: smooth.Interval(b.rate), Refill: b.rate / 1e9}
	return b, curve, nil
}

// A stored is a ledger that can be saved.
type stored interface {
	reserve.Ledger
	reserve.Saver
}

// A journal is the state of such a limiter: what its ledger saved some time ago, and the requests since, each at its
// promised time. The ledger of today is made by taking them again. So a promise that another process holds never moves.
// A request that comes back, late or early, is as if it had been that much smaller. Waiting requests are in front of
// new ones: a new request is decided as of the moment at which the last of them is granted.
//
// Times are nanoseconds on the store's clock. Where that was set back, all of them are moved with it.
type journal struct {
	*book
	base    []byte // AppendState's, at then; nil: a new ledger's
	then    int64
	last    int64  // when the journal was written
	first   uint64 // the number of the first entry
	entries []entryOf
}

// An entryOf is a request: the permits that it was promised, less what it gave back, and when.
type entryOf struct{ at, permits int64 }

const (
	journalMagic = "pac\x05"
	// mostEntries may come back. With more, the oldest granted ones become part of the base, down to keptEntries.
	mostEntries, keptEntries = 512, 384
	// slack is by how much the store's clock may differ from call to call without having been set.
	slack = int64(5 * time.Millisecond)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// decodeJournal reads a journal. At is the store's time.
func decodeJournal(b []byte, of *book, at int64) (*journal, error) {
	j := &journal{book: of, then: at, last: at, first: uint64(max(1, at/1000))}
	if b == nil {
		return j, nil
	}
	rest, bad := b, false
	number := func() uint64 {
		n, size := binary.Uvarint(rest)
		if size <= 0 {
			bad, rest = true, nil
			return 0
		}
		rest = rest[size:]
		return n
	}
	text := func() []byte {
		n := number()
		if n > uint64(len(rest)) {
			bad = true
			return nil
		}
		text := rest[:n]
		rest = rest[n:]
		return text
	}
	end := len(b) - 4
	if end < len(journalMagic) || string(b[:len(journalMagic)]) != journalMagic ||
		binary.LittleEndian.Uint32(b[end:]) != crc32.Checksum(b[:end], castagnoli) {
		return nil, &StateError{len(b)}
	}
	rest = b[len(journalMagic):end]
	if string(text()) != of.kind {
		return nil, &StateError{len(b)}
	}
	j.last, j.then, j.first = int64(number()), int64(number()), number()
	if base := text(); len(base) > 0 {
		j.base = slices.Clone(base)
	}
	for before := j.then; len(rest) > 0; {
		e := entryOf{at: saturate.Add(before, int64(number())), permits: int64(number())}
		bad = bad || e.at < before || e.permits < 0
		j.entries, before = append(j.entries, e), e.at
	}
	if bad || j.last < 0 || j.then < 0 {
		return nil, &StateError{len(b)}
	}
	return j, nil
}

func (j *journal) encode() []byte {
	b := append([]byte(journalMagic), byte(len(j.kind)))
	b = append(b, j.kind...)
	for _, n := range []uint64{uint64(j.last), uint64(j.then), j.first, uint64(len(j.base))} {
		b = binary.AppendUvarint(b, n)
	}
	b = append(b, j.base...)
	before := j.then
	for _, e := range j.entries {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(e.at-before)), uint64(e.permits))
		before = e.at
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decide decides an order, and reports whether the journal has changed, and for how long it has to be kept.
func (j *journal) decide(o *order, now int64) (changed bool, keep time.Duration, err error) {
	o.decided, o.late = float64(now/1000), false
	if back := j.last - now; back > slack {
		if err = j.setBack(now, back); err != nil {
			return false, 0, err
		}
		changed = true
	} else {
		now = max(now, j.last)
	}
	j.last = now
	changed = j.giveBack(o.refunds) || changed
	if o.pause != 0 {
		if err = j.pause(now, o.pause); err != nil {
			return false, 0, err
		}
		changed = true
	}
	fold := 0
	if len(j.entries)+len(o.asked) > mostEntries {
		fold = len(j.entries) + len(o.asked) - keptEntries
	}
	ledger, err := j.fold(now, fold)
	if err != nil {
		return false, 0, err
	}
	o.state = j.look(ledger, now)
	from, waiting := j.follow(ledger, now)
	o.state.level -= waiting
	if o.state.debt = j.wait(ledger, now, from, 1); o.state.debt > 0 || waiting > 0 {
		o.state.stored = 0
	}
	o.after, o.waits, o.numbers = o.state, o.waits[:0], o.numbers[:0]
	for _, w := range o.asked {
		changed = j.sell(o, w, ledger, now, from) || changed
	}
	if n := len(o.asked); n > 0 {
		o.after.debt, o.after.again = j.wait(ledger, now, from, 1), j.wait(ledger, now, from, o.asked[n-1].permits)
	}
	return changed, j.keep(now, o.after.debt), nil
}

// setBack moves the journal with the store's clock, which was set back: no time has passed.
func (j *journal) setBack(now, back int64) error {
	if _, err := j.fold(j.last, math.MaxInt); err != nil {
		return err
	}
	j.then = now
	for i := range j.entries {
		j.entries[i].at -= back
	}
	return nil
}

// giveBack takes permits off their entries, and reports whether it did.
func (j *journal) giveBack(refunds []comeback) (changed bool) {
	for _, r := range refunds {
		if i := uint64(r.number) - j.first; i < uint64(len(j.entries)) && uint64(r.number) >= j.first {
			j.entries[i].permits = max(0, j.entries[i].permits-int64(r.kept))
			changed = true
		}
	}
	for n := len(j.entries); n > 0 && j.entries[n-1].permits == 0; n-- { // no request waits behind them
		j.entries = j.entries[:n-1]
	}
	return changed
}

// sell decides one request of an order, behind all that wait until from, and reports whether it was granted.
func (j *journal) sell(o *order, w wanted, ledger stored, now, from int64) bool {
	latest := saturate.Add(now, toWait(w.limit))
	if w.limit < 0 {
		latest = now - 1
	}
	_, ready, ok := ledger.Reserve(from, int(w.permits), latest)
	ready = max(ready, from)
	wait := float64(max(0, ready-now))
	if !ok || ready > latest {
		o.waits, o.numbers = append(o.waits, -1-max(1, wait)), append(o.numbers, 0)
		return false
	}
	o.waits = append(o.waits, wait)
	o.numbers = append(o.numbers, float64(j.first+uint64(len(j.entries))))
	j.entries = append(j.entries, entryOf{ready, int64(w.permits)})
	if o.after.level -= w.permits; wait == 0 {
		o.after.stored = max(0, o.after.stored-w.permits)
	} else {
		o.after.stored = 0
	}
	return true
}

// wait returns how long a request, made now behind all others, would wait.
func (j *journal) wait(l stored, now, from int64, permits float64) float64 {
	if j.most > 0 {
		permits = min(permits, float64(j.most))
	}
	_, ready, _ := l.Reserve(from, int(permits), math.MinInt64) // nothing is ready then, so it takes nothing
	return float64(max(0, max(ready, from)-now))
}

// fold returns the ledger as of now, behind the granted requests of the journal. The first n of these become part of
// the base, or all, if they are fewer.
func (j *journal) fold(now int64, n int) (stored, error) {
	ledger, err := (*engine.Policy)(j.policy).Ledger(j.base, j.then, func(t int64) time.Time { return time.Unix(0, t) })
	if err != nil {
		return nil, &StateError{len(j.base)}
	}
	l, gone := ledger.(stored), 0
	for gone < len(j.entries) && j.entries[gone].at <= now {
		e := j.entries[gone]
		if e.permits > 0 {
			l.Charge(e.at, int(e.permits))
		}
		if gone++; gone == n {
			j.base, j.then = l.AppendState(nil, e.at), e.at
		}
	}
	if n > gone {
		n = gone
		j.base, j.then = l.AppendState(nil, now), now
	}
	j.entries, j.first = slices.Delete(j.entries, 0, n), j.first+uint64(n)
	return l, nil
}

// follow grants the waiting requests. It returns when the last one is granted, at the earliest now, and for how many
// permits they wait.
func (j *journal) follow(l stored, now int64) (from int64, waiting float64) {
	from = now
	for _, e := range j.entries {
		if e.at > now && e.permits > 0 {
			l.Charge(e.at, int(e.permits))
			from, waiting = e.at, waiting+float64(e.permits)
		}
	}
	return from, waiting
}

// look returns what the ledger says of itself now.
func (j *journal) look(l stored, now int64) state {
	return state{time: float64(now / 1000), stored: l.Stored(now), level: l.Level(now)}
}

// pause pauses the limiter for so long, ends that, or makes it new.
func (j *journal) pause(now int64, d float64) error {
	if d == reset {
		j.base, j.then, j.first, j.entries = nil, now, j.first+uint64(len(j.entries)), nil
		return nil
	}
	l, err := j.fold(now, math.MaxInt)
	if err != nil {
		return err
	}
	if d == resume {
		l.Resume(now)
	} else {
		l.Pause(now, saturate.Add(now, int64(min(d, longest))))
	}
	j.base, j.then = l.AppendState(nil, now), now
	return nil
}

// keep returns for how long, at most, the journal says more than a new one would. It does until all requests are
// granted and a permit is free again (so behind a pause). Three windows or periods are added, and one more for each
// that the requests use up.
func (j *journal) keep(now int64, debt float64) time.Duration {
	last, sum := now, 0.0
	for _, e := range j.entries {
		last, sum = max(last, e.at), sum+float64(e.permits)
	}
	length := j.capacity / j.rate * 1e9
	d := max(float64(last-now), debt) + length*(3+sum/j.capacity) + 1e9
	return time.Duration(min(d, longest))
}
