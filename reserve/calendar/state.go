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
	b, _ = binary.Append(b, binary.LittleEndian, []int64{
		s.begin, s.end, s.used, s.beyond, s.paced, s.from, s.paid, l.toWall(max(l.Stopped, now)),
	})
	return b
}

// savedTerms is the form of saved terms; the place's name follows: FORMATS.md.
type savedTerms struct {
	Rate, Spread             float64
	Quota, Margin            int64
	Kind                     kind
	At, Weekday, Day, Length int64
	Offset                   int64 // the place's distance to UTC in 1970, in seconds
}

func (r *rule) AppendTerms(b []byte) []byte {
	p, place := r.period, ""
	s := savedTerms{
		r.rate, r.spread, r.quota, r.margin, p.kind, int64(p.at), int64(p.weekday), int64(p.day), int64(p.length), 0,
	}
	if p.loc != nil {
		s.Offset, place = offset(p.loc), p.loc.String()
	}
	b, _ = binary.Append(b, binary.LittleEndian, s)
	return append(b, place...)
}

func offset(loc *time.Location) int64 {
	_, seconds := time.Unix(0, 0).In(loc).Zone()
	return int64(seconds)
}

func (r *rule) loadTerms(terms []byte) (*rule, error) {
	if len(terms) == 0 || bytes.Equal(terms, r.AppendTerms(nil)) {
		return r, nil
	}
	var s savedTerms
	size, err := binary.Decode(terms, binary.LittleEndian, &s)
	of := &rule{rate: s.Rate, spread: s.Spread, quota: s.Quota, margin: s.Margin, period: Period{
		kind: s.Kind, at: time.Duration(s.At), weekday: time.Weekday(s.Weekday), day: int(s.Day),
		length: time.Duration(s.Length),
	}}
	if err == nil && s.Kind < every {
		of.period.loc = r.place(string(terms[size:]), s.Offset)
	}
	good := err == nil && s.Kind <= fromFirst && of.period.check() == nil
	if !good || of.quota < 1 || of.margin < 0 || !(of.rate > 0 && of.spread >= 1) {
		return nil, errors.New("they have terms that no calendar has")
	}
	return of, nil
}

// place returns a location by its name and offset: this rule's, if it is that, or one that this machine knows.
func (r *rule) place(name string, seconds int64) *time.Location {
	is := func(loc *time.Location) bool { return loc != nil && loc.String() == name && offset(loc) == seconds }
	if is(r.period.loc) {
		return r.period.loc
	}
	if loc, err := time.LoadLocation(name); err == nil && is(loc) {
		return loc
	}
	return time.FixedZone(name, int(seconds))
}

func (r *rule) load(saved []byte, then int64, wall func(t int64) time.Time) (*ledger, error) {
	if saved == nil {
		return newLedger(r, then, wall), nil
	}
	n := make([]int64, 8)
	if size, err := binary.Decode(saved, binary.LittleEndian, n); err != nil || size < len(saved) {
		return nil, errors.New("they have another length than a calendar's")
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
