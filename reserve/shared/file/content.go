package file

import (
	"errors"
	"hash/crc32"
	"io"
	"time"
)

// read returns the entries, the current first, and the state: nil if it has expired or there is none.
func (f *file) read() (entries [2]entry, state []byte, err error) {
	if f.buf == nil {
		f.buf = make([]byte, firstRead)
	}
	n, err := f.f.ReadAt(f.buf[:firstRead], 0)
	if err != nil && err != io.EOF {
		return entries, nil, &Error{Op: "read", Path: f.path, Err: err}
	}
	entries, both, err := f.entries(n)
	if err != nil {
		return entries, nil, err
	}
	for i, e := range entries {
		over := e.length == 0 || e.expired(time.Now())
		if i == 0 && over {
			return entries, nil, nil
		} else if i == 1 && (over || !both) {
			break // there is nothing to go back to
		}
		state, whole, err := f.state(&e, n)
		if err != nil || whole {
			return entries, state, err
		}
		// The power failed between the head and the state: the older entry counts.
	}
	return entries, nil, &CorruptError{Path: f.path, Why: "its state is damaged"}
}

// entries returns the head's entries, the newer first, and whether both are whole. n bytes are in buf.
func (f *file) entries(n int) (list [2]entry, both bool, err error) {
	if n < head {
		return list, false, &CorruptError{Path: f.path, Why: "it is cut off"}
	}
	a, one := parse(f.buf[:sector])
	b, two := parse(f.buf[sector:head])
	switch {
	case !one && !two:
		return list, false, &CorruptError{Path: f.path, Why: "it has no head of this version"}
	case !two || one && a.number > b.number:
		return [2]entry{a, b}, one && two, nil
	}
	return [2]entry{b, a}, one && two, nil
}

// state reads an entry's state, and reports whether it is whole. n bytes are in buf.
func (f *file) state(e *entry, n int) (state []byte, whole bool, err error) {
	if end := e.offset + uint64(e.length); end <= uint64(n) {
		state = f.buf[e.offset:end]
	} else {
		state = make([]byte, e.length)
		switch _, err := f.f.ReadAt(state, int64(e.offset)); {
		case err == io.EOF:
			return nil, false, &CorruptError{Path: f.path, Why: "it is cut off"}
		case err != nil:
			return nil, false, &Error{Op: "read", Path: f.path, Err: err}
		}
	}
	return state, crc32.Checksum(state, table) == e.checksum, nil
}

// write writes a state beside the current, and then the head.
func (f *file) write(entries [2]entry, state []byte, until int64, durable bool) error {
	now, next := entries[0], entries[1]
	if len(state) > largest {
		return &Error{Op: "write", Path: f.path, Err: errors.New("the state is larger than 16 MiB")}
	}
	if need := uint32(len(state)); need > next.room || next.room == 0 {
		next.room = max(smallest, need+need/2)
		next.offset = max(head, now.offset+uint64(now.room), next.offset+uint64(entries[1].room))
	}
	next.number, next.length, next.until, next.dead = now.number+1, uint32(len(state)), until, false
	next.checksum = crc32.Checksum(state, table)
	if _, err := f.f.WriteAt(state, int64(next.offset)); err != nil {
		return &Error{Op: "write", Path: f.path, Err: err}
	}
	if durable {
		if err := f.f.Sync(); err != nil {
			return &Error{Op: "write", Path: f.path, Err: err}
		}
	}
	return f.point(&next, durable)
}

// point replaces the older entry. Odd numbers are in the first sector.
func (f *file) point(next *entry, durable bool) error {
	var b [entrySize]byte
	next.append(b[:0])
	at := int64(sector)
	if next.number%2 == 1 {
		at = 0
	}
	if _, err := f.f.WriteAt(b[:], at); err != nil {
		return &Error{Op: "write", Path: f.path, Err: err, written: true}
	}
	if durable {
		if err := f.f.Sync(); err != nil {
			return &Error{Op: "write", Path: f.path, Err: err, written: true}
		}
	}
	return nil
}
