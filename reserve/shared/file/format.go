package file

import (
	"encoding/binary"
	"hash/crc32"
	"time"
)

// A file begins with a head of two sectors, each with an entry: a number, and where a state is. The entry with the
// higher number counts. A new state is written where the other entry's is, or behind all, and then the other entry,
// in one piece. So at each moment one entry and its state are whole.
//
// An entry, little-endian:
//
//	0   magic   "pace" and the version, 8 bytes
//	8   number  uint64, from 1
//	16  offset  uint64, of the state
//	24  length  uint32, of the state
//	28  room    uint32, for states there
//	32  until   int64, Unix nanoseconds: when the state expires
//	40  check   uint32, of the state
//	44  dead    uint32, 1: the file is being removed
//	48  check   uint32, of all in front
const (
	magic     = "pace-f1\n"
	sector    = 512
	head      = 2 * sector
	entrySize = 52
	smallest  = 256 // bytes of room for a state
	firstRead = head + 4*smallest
	largest   = 1 << 24 // bytes of a state
)

type entry struct {
	number, offset         uint64
	length, room, checksum uint32
	until                  int64
	dead                   bool
}

var table = crc32.MakeTable(crc32.Castagnoli)

func (e *entry) append(b []byte) []byte {
	from := len(b)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint64(b, e.number)
	b = binary.LittleEndian.AppendUint64(b, e.offset)
	b = binary.LittleEndian.AppendUint32(b, e.length)
	b = binary.LittleEndian.AppendUint32(b, e.room)
	b = binary.LittleEndian.AppendUint64(b, uint64(e.until))
	b = binary.LittleEndian.AppendUint32(b, e.checksum)
	dead := uint32(0)
	if e.dead {
		dead = 1
	}
	b = binary.LittleEndian.AppendUint32(b, dead)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[from:], table))
}

// parse returns the entry in a sector, if one is whole.
func parse(b []byte) (e entry, ok bool) {
	if len(b) < entrySize || string(b[:8]) != magic ||
		binary.LittleEndian.Uint32(b[48:]) != crc32.Checksum(b[:48], table) {
		return entry{}, false
	}
	e = entry{
		number: binary.LittleEndian.Uint64(b[8:]), offset: binary.LittleEndian.Uint64(b[16:]),
		length: binary.LittleEndian.Uint32(b[24:]), room: binary.LittleEndian.Uint32(b[28:]),
		until: int64(binary.LittleEndian.Uint64(b[32:])), checksum: binary.LittleEndian.Uint32(b[40:]),
		dead: binary.LittleEndian.Uint32(b[44:]) == 1,
	}
	return e, e.length <= e.room && e.length <= largest && e.offset >= head && e.offset < 1<<40
}

func (e *entry) expired(now time.Time) bool { return e.until <= now.UnixNano() }
