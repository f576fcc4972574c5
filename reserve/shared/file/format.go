package file

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"time"
)

// A file begins with a head of two sectors, each with an entry that shows a state. The entry with the higher number
// counts. A new state is written where the current one is not, and then the older entry is replaced, in one piece. So
// at each moment one entry and its state are whole.
//
// FORMATS.md has the format.
const (
	magic     = "pace-f1\n"
	sector    = 512
	head      = 2 * sector
	entrySize = 36
	smallest  = 256 // bytes of a place
	firstRead = head + 4*smallest
	largest   = 1 << 24 // bytes of a state
	dead      = -1      // the time of an entry: the file is being removed
)

type entry struct {
	Number uint64 // from 1
	Until  int64  // Unix nanoseconds: when the state expires
	Length uint32 // of the state; 0: none
	Check  uint32 // of the state
}

var table = crc32.MakeTable(crc32.Castagnoli)

func (e entry) bytes() []byte {
	b := append(make([]byte, 0, entrySize), magic...)
	b, _ = binary.Append(b, binary.LittleEndian, e) // of a fixed size
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, table))
}

// parse returns the entry in a sector, if it is whole.
func parse(b []byte) (e entry, ok bool) {
	end := entrySize - 4
	if string(b[:len(magic)]) != magic || binary.LittleEndian.Uint32(b[end:]) != crc32.Checksum(b[:end], table) {
		return entry{}, false
	}
	if _, err := binary.Decode(b[len(magic):end], binary.LittleEndian, &e); err != nil || e.Length > largest {
		return entry{}, false
	}
	return e, true
}

func (e entry) offset() int64 {
	room := int64(smallest)
	for room < int64(e.Length) {
		room *= 2
	}
	return head + 2*(room-smallest) + int64(e.Number%2)*room
}

// read returns the newer entry, and its state: nil if it has expired or there is none.
func (f *file) read() (is entry, state []byte, err error) {
	if f.buf == nil {
		f.buf = make([]byte, firstRead)
	}
	n, err := f.ReadAt(f.buf, 0)
	switch {
	case err != nil && err != io.EOF:
		return is, nil, failed("read", f.Name(), err)
	case n < head:
		return is, nil, &CorruptError{Path: f.Name(), Why: "it is cut off"}
	}
	is, one := parse(f.buf[:sector])
	older, two := parse(f.buf[sector:head])
	if !one && !two {
		return is, nil, &CorruptError{Path: f.Name(), Why: "it has no head of this version"}
	}
	if older.Number > is.Number {
		is, older = older, is
	}
	if is.over() {
		return is, nil, nil
	}
	state, whole, err := f.state(is, f.buf[:n])
	if err == nil && !whole && !older.over() { // the power failed between the head and the state
		state, whole, err = f.state(older, f.buf[:n])
	}
	if err == nil && !whole {
		err = &CorruptError{Path: f.Name(), Why: "its state is damaged"}
	}
	return is, state, err
}

func (e entry) over() bool { return e.Length == 0 || e.Until <= time.Now().UnixNano() }

// state reads an entry's state, and reports whether it is whole. begin is what has been read.
func (f *file) state(e entry, begin []byte) (state []byte, whole bool, err error) {
	from := e.offset()
	if end := from + int64(e.Length); end <= int64(len(begin)) {
		state = begin[from:end]
	} else {
		state = make([]byte, e.Length)
		switch _, err := f.ReadAt(state, from); {
		case err == io.EOF:
			return nil, false, &CorruptError{Path: f.Name(), Why: "it is cut off"}
		case err != nil:
			return nil, false, failed("read", f.Name(), err)
		}
	}
	return state, crc32.Checksum(state, table) == e.Check, nil
}

func (f *file) write(number uint64, state []byte, until int64, durable bool) error {
	e := entry{Number: number, Until: until, Length: uint32(len(state)), Check: crc32.Checksum(state, table)}
	err := errors.New("the state is larger than 16 MiB")
	if len(state) <= largest {
		_, err = f.WriteAt(state, e.offset())
	}
	if err == nil && durable {
		err = f.Sync()
	}
	if err != nil {
		return failed("write", f.Name(), err)
	}
	return f.point(e, durable)
}

func (f *file) point(e entry, durable bool) error {
	_, err := f.WriteAt(e.bytes(), sector*int64(1-e.Number%2))
	if err == nil && durable {
		err = f.Sync()
	}
	if err != nil {
		e := failed("write", f.Name(), err)
		e.Written = true
		return e
	}
	return nil
}
