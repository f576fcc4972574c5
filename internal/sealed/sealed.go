// Package sealed is the envelope of all that pace saves:
//
//	"pace" and the version, 5 bytes
//	the kind, with its length in front
//	what was saved
//	a checksum of all that, CRC-32C, 4 bytes
//
// Numbers are little-endian.
package sealed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

const magic, version = "pace", 2

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Begin appends the beginning of an envelope. The caller appends the contents, and calls End.
func Begin(b []byte, kind string) []byte {
	b = append(append(b, magic...), version, byte(len(kind)))
	return append(b, kind...)
}

func End(b []byte, from int) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[from:], castagnoli))
}

// Open returns the contents of an envelope of that kind. Its error says what the bytes are instead.
func Open(b []byte, kind string) ([]byte, error) {
	const head, sum = len(magic) + 2, 4
	if len(b) < head+sum || string(b[:len(magic)]) != magic {
		return nil, errors.New("they do not begin with pace's mark")
	}
	if v := b[len(magic)]; v != version {
		return nil, fmt.Errorf("they are of version %d; this pace reads version %d", v, version)
	}
	body := b[:len(b)-sum]
	if binary.LittleEndian.Uint32(b[len(body):]) != crc32.Checksum(body, castagnoli) {
		return nil, errors.New("their checksum is wrong: they are cut off or damaged")
	}
	body = body[head:]
	n := int(b[head-1])
	if n > len(body) {
		return nil, errors.New("they are cut off")
	}
	if is := string(body[:n]); is != kind {
		return nil, fmt.Errorf("they are of %q; want %q", is, kind)
	}
	return body[n:], nil
}
