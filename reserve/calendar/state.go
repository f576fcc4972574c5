package calendar

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/nextfree/pace/internal/line"
)

// AppendState includes charges behind waiting requests. Times are the wall clock's.
func (l *ledger) AppendState(b []byte, now int64) []byte {
	l.Advance(now)
	s := l.state
	s.at = l.Now // no request waits
	if charges := l.Permits(true); charges > 0 {
		s = l.After(s, charges, line.Asap)
	}
	for _, n := range []int64{
		s.begin, s.end, s.used, s.beyond, s.paced, s.from, s.paid, l.toWall(max(l.Stopped, now)),
	} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return b
}

func (r *rule) AppendTerms(b []byte) []byte {
	p := r.period
	for _, n := range []uint64{math.Float64bits(r.rate), math.Float64bits(r.spread), uint64(r.quota), uint64(r.margin)} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	for _, n := range []int64{int64(p.kind), int64(p.at), int64(p.weekday), int64(p.day), int64(p.length)} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	if p.loc != nil {
		b = append(binary.AppendVarint(b, int64(offset(p.loc))), p.loc.String()...)
	}
	return b
}

// offset returns a place's distance to UTC in 1970, in seconds.
func offset(loc *time.Location) int {
	_, seconds := time.Unix(0, 0).In(loc).Zone()
	return seconds
}

func (r *rule) loadTerms(terms []byte) (*rule, error) {
	if len(terms) == 0 || bytes.Equal(terms, r.AppendTerms(nil)) {
		return r, nil
	}
	bad := errors.New("they have terms that no calendar has")
	if len(terms) < 32 {
		return nil, bad
	}
	double := func(at int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(terms[at:])) }
	of := &rule{
		rate: double(0), spread: double(8),
		quota: int64(binary.LittleEndian.Uint64(terms[16:])), margin: int64(binary.LittleEndian.Uint64(terms[24:])),
	}
	var n [5]int64
	for i, rest := 0, terms[32:]; i < len(n); i++ {
		number, size := binary.Uvarint(rest)
		if size <= 0 {
			return nil, bad
		}
		n[i], rest = int64(number), rest[size:]
		terms = rest
	}
	of.period = Period{
		kind: kind(n[0]), at: time.Duration(n[1]), weekday: time.Weekday(n[2]), day: int(n[3]), length: time.Duration(n[4]),
	}
	if n[0] < int64(every) {
		seconds, size := binary.Varint(terms)
		if size <= 0 {
			return nil, bad
		}
		of.period.loc = r.place(string(terms[size:]), int(seconds))
	}
	if n[0] > int64(fromFirst) || of.period.check() != nil || of.quota < 1 || of.margin < 0 || !(of.rate > 0 && of.spread >= 1) {
		return nil, bad
	}
	return of, nil
}

// place returns a location by its name and offset: this rule's, if it is that, or one that this machine knows.
func (r *rule) place(name string, seconds int) *time.Location {
	is := func(loc *time.Location) bool { return loc != nil && loc.String() == name && offset(loc) == seconds }
	if is(r.period.loc) {
		return r.period.loc
	}
	if loc, err := time.LoadLocation(name); err == nil && is(loc) {
		return loc
	}
	return time.FixedZone(name, seconds)
}

func (r *rule) load(saved []byte, then int64, wall func(t int64) time.Time) (*ledger, error) {
	var n [8]int64
	if saved == nil {
		return newLedger(r, then, wall), nil
	}
	if len(saved) != 8*len(n) {
		return nil, errors.New("they have another length than a calendar's")
	}
	for i := range n {
		n[i] = int64(binary.LittleEndian.Uint64(saved[8*i:]))
	}
	of := state{
		span: span{begin: n[0], end: n[1]}, used: n[2], beyond: max(0, n[3]), at: math.MinInt64,
		pacing: pacing{paced: n[4], from: n[5], paid: max(0, n[6])},
	}
	if of.used < 0 || of.span != closed && of.begin >= of.end {
		return nil, errors.New("they have a period that ends before it begins, or a negative use")
	}
	l := newLedger(r, then, wall)
	if of.span == closed && r.period.kind != fromFirst {
		return l, nil // of another kind of period, and nothing used
	}
	l.state = of
	if end := l.state.end; r.period.kind != fromFirst && end > l.Now {
		// The zone's rules, or the kind of period, may have changed.
		if l.state.span = r.period.around(max(l.Now, of.begin)); l.state.used > 0 && l.Now < of.begin {
			l.state.span = of.span // the clock was set back: it goes on
		}
	}
	if stopped := n[7] - l.Offset; stopped > then {
		l.Stopped = stopped
	}
	l.state = l.open(l.state, l.Now)
	return l, nil
}
