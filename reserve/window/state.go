package window

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/nextfree/pace/internal/line"
)

// AppendTerms appends how many permits there are, in how long, including the margin, and the rate.
func (l *ledger) AppendTerms(b []byte) []byte {
	for _, n := range []int64{l.size, l.per, l.margin} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(l.rate))
}

// AppendState appends the rest of a pause and of a stop, then the permits and age of each request granted within the
// last per. The age counts from the end of use; permits in use, and charges that wait, have age 0.
func (l *ledger) AppendState(b []byte, now int64) []byte {
	l.Advance(now)
	b = binary.AppendUvarint(b, uint64(max(0, l.until-now)))
	b = binary.AppendUvarint(b, uint64(max(0, l.Stopped-now)))
	add := func(permits, age int64) {
		if permits > 0 {
			permits = min(permits, math.MaxInt64/2) // load takes no more
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(permits)), uint64(max(0, age)))
		}
	}
	before := l.left
	for _, g := range l.log.All() {
		add(int64(g.sum-before), l.Now-g.at)
		before = g.sum
	}
	add(l.out, 0)
	add(l.Permits(true), 0)
	return b
}

type reader struct {
	rest   []byte
	failed error
}

func (r *reader) number(most uint64) int64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > most {
		r.failed, r.rest = errors.New("they have no number where a window's have one"), nil
		return 0
	}
	r.rest = r.rest[size:]
	return int64(n)
}

func (l *ledger) load(terms, saved []byte) error {
	if err := l.loadTerms(terms); err != nil || saved == nil {
		return err
	}
	r := reader{rest: saved}
	next := func() int64 { return r.number(math.MaxInt64 / 2) }
	begin, pause := l.Now, next()
	l.until += pause
	l.Offset -= pause
	l.Stopped = begin + next()
	for last := int64(never); r.failed == nil && len(r.rest) > 0; {
		permits, age := next(), next()
		if r.failed == nil && (permits == 0 || age > last) {
			return errors.New("they have requests that are not in order")
		}
		last = age
		after := l.After(l.Present(), permits, line.Asap) // which knows the largest sum
		after.at = begin - age
		l.Grant(0, 0, after)
	}
	return r.failed
}

func (l *ledger) loadTerms(terms []byte) error {
	if len(terms) == 0 {
		return nil
	}
	r := reader{rest: terms}
	l.size, l.per, l.margin = r.number(math.MaxInt64), r.number(longest), r.number(math.MaxInt64)
	if r.failed == nil && len(r.rest) == 8 {
		l.rate = math.Float64frombits(binary.LittleEndian.Uint64(r.rest))
	}
	if l.size < 1 || len(r.rest) != 8 || !(l.rate > 0) {
		return errors.New("they have terms that no window has")
	}
	return nil
}
