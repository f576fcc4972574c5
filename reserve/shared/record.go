package shared

import (
	"encoding/binary"
	"fmt"
	"math"

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

// encode writes the form that FORMATS.md has.
func (j *journal) encode() []byte {
	first := j.newest
	if len(j.records) > 0 {
		first = j.records[0].number - 1
	}
	gaps := uint64(0)
	if j.gaps {
		gaps = 1
	}
	b := make([]byte, 0, 96+len(j.saved)+6*len(j.records))
	b = sealed.Begin(b, j.terms.kind)
	for _, n := range []uint64{uint64(j.last), uint64(j.then), j.newest, first, gaps, uint64(len(j.saved))} {
		b = binary.AppendUvarint(b, n)
	}
	if j.terms.other == nil {
		b = doubles(b, j.limits.rate, j.limits.capacity)
	}
	b = append(b, j.saved...)
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
			b = doubles(b, r.limits.rate, r.limits.capacity)
		case j.terms.upfront && j.terms.line.Base > 0:
			b = binary.AppendUvarint(b, uint64(r.since))
		}
		at, first = r.at, r.number
	}
	return sealed.End(b, 0)
}

// decode reads a journal: nil is a new limiter's. now is the store's time.
func (j *journal) decode(b []byte, t *terms, now int64) error {
	*j = journal{terms: t, then: now, last: now, limits: t.limits(), newest: uint64(max(1, now)), records: j.records[:0]}
	if b == nil {
		return nil
	}
	body, err := sealed.Open(b, t.kind)
	if err != nil {
		return &StateError{Size: len(b), Why: err.Error()}
	}
	r := reader{rest: body}
	j.last, j.then, j.newest = int64(r.number()), int64(r.number()), r.number()
	number, gaps, size := r.number(), r.number(), r.number()
	j.gaps = gaps != 0
	if t.other == nil {
		j.limits = r.limits()
	}
	j.saved = append([]byte(nil), r.bytes(size)...) // nil if there is none
	for at := j.then; len(r.rest) > 0; {
		at = saturate.Add(at, int64(r.number()))
		code := r.number()
		of := record{at: at, kind: kind(code >> 1 & 7), amount: int64(code >> 4)}
		if number++; code&1 != 0 {
			number += uint64(r.signed() - 1)
		}
		switch of.number = number; {
		case of.kind == changed:
			of.limits = r.limits()
		case t.upfront && t.line.Base > 0:
			of.since = int64(r.number())
		}
		r.bad = r.bad || of.kind > lastKind || at < j.then
		j.records = append(j.records, of)
	}
	if r.bad || j.last < 0 || j.then < 0 {
		return &StateError{Size: len(b), Why: "they have numbers that no limiter has"}
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

func (r *reader) limits() limits {
	if b := r.bytes(16); b != nil {
		rate := math.Float64frombits(binary.LittleEndian.Uint64(b))
		capacity := math.Float64frombits(binary.LittleEndian.Uint64(b[8:]))
		if rate > 0 && capacity >= 0 {
			return limits{rate, capacity}
		}
	}
	r.bad = true
	return limits{rate: 1}
}
