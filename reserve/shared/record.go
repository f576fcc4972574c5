package shared

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/internal/sealed"
)

// A StateError says that a stored value is not the state of a limiter of that policy.
type StateError struct {
	Size int    // in bytes
	Why  string // "they are cut off"
}

func (e *StateError) Error() string {
	return fmt.Sprintf("shared: a value of %d bytes is not the state of this limiter: %s", e.Size, e.Why)
}

// The flags of a value: something was given back while others wait; records say for how long they wait; uses are told;
// it has had terms that need longer to fill.
const (
	hasGaps = 1 << iota
	hasSince
	hasUses
	hasSlowest
)

func (j *journal) encode() []byte {
	first := j.newest
	if len(j.records) > 0 {
		first = j.records[0].number - 1
	}
	flags := uint64(0)
	if j.gaps {
		flags |= hasGaps
	}
	if j.uses {
		flags |= hasUses
	}
	if slices.ContainsFunc(j.records, func(r record) bool { return r.since != 0 }) {
		flags |= hasSince
	}
	if j.slowest > 0 {
		flags |= hasSlowest
	}
	b := make([]byte, 0, 128+len(j.saved)+6*len(j.records))
	b = sealed.Begin(b, j.terms.kind)
	for _, n := range []uint64{uint64(j.last), uint64(j.then), j.newest, first, flags} {
		b = binary.AppendUvarint(b, n)
	}
	if j.slowest > 0 {
		b = binary.AppendUvarint(b, uint64(j.slowest))
	}
	b = appendBytes(appendBytes(b, j.rules.saved), j.saved)
	at := j.then
	for _, r := range j.records {
		b = binary.AppendUvarint(b, uint64(r.at-at))
		code := uint64(r.amount)<<4 | uint64(r.kind)<<1
		if r.number == first+1 {
			b = binary.AppendUvarint(b, code)
		} else {
			b = binary.AppendUvarint(b, code|1)
			b = binary.AppendVarint(b, int64(r.number-first))
		}
		switch {
		case r.kind == changed:
			b = appendBytes(b, r.rules.saved)
		case flags&hasSince != 0:
			b = binary.AppendUvarint(b, uint64(r.since))
		}
		at, first = r.at, r.number
	}
	return sealed.End(b, 0)
}

// decode reads a journal: nil is a new limiter's. now is the store's time.
func (j *journal) decode(b []byte, t *terms, now int64) error {
	*j = journal{terms: t, then: now, last: now, rules: t.rules, newest: uint64(max(1, now)), records: j.records[:0]}
	if b == nil {
		return nil
	}
	body, err := sealed.Open(b, t.kind)
	if err != nil {
		return &StateError{Size: len(b), Why: err.Error()}
	}
	r := reader{rest: body}
	j.last, j.then, j.newest = int64(r.number()), int64(r.number()), r.number()
	number, flags := r.number(), r.number()
	j.gaps, j.uses = flags&hasGaps != 0, flags&hasUses != 0
	if flags&hasSlowest != 0 {
		j.slowest = int64(r.number())
	}
	j.rules = r.rules(t)
	j.saved = append([]byte(nil), r.bytes(r.number())...) // nil if there is none
	for at := j.then; len(r.rest) > 0; {
		at = saturate.Add(at, int64(r.number()))
		code := r.number()
		of := record{at: at, kind: kind(code >> 1 & 7), amount: int64(code >> 4)}
		if number++; code&1 != 0 {
			number += uint64(r.signed() - 1)
		}
		switch of.number = number; {
		case of.kind == changed:
			of.rules = r.rules(t)
		case flags&hasSince != 0:
			of.since = int64(r.number())
		}
		r.bad = r.bad || of.kind > lastKind || at < j.then
		j.records = append(j.records, of)
	}
	if r.bad || j.last < 0 || j.then < 0 {
		return &StateError{Size: len(b), Why: "they have numbers that no limiter has"}
	}
	if _, err := j.load(j.saved, j.then, j.rules); err != nil {
		return &StateError{Size: len(b), Why: err.Error()}
	}
	return nil
}

type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	r.skip(size)
	return n
}

func (r *reader) signed() int64 {
	n, size := binary.Varint(r.rest)
	r.skip(size)
	return n
}

func (r *reader) skip(size int) {
	if size <= 0 {
		r.bad, r.rest = true, nil
		return
	}
	r.rest = r.rest[size:]
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) rules(t *terms) *rules {
	of, err := t.rulesOf(r.bytes(r.number()))
	if err != nil {
		r.bad = true
		return t.rules
	}
	return of
}

func appendBytes(b, of []byte) []byte { return append(binary.AppendUvarint(b, uint64(len(of))), of...) }
