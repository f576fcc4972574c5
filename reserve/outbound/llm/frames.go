package llm

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
)

// frames is a body in AWS's event stream encoding. A frame is, big-endian,
//
//	total length (4 bytes), headers' length (4), checksum of these two (4), headers, payload, checksum (4)
//
// Converse's payload is a document; InvokeModel has it as base64: {"bytes":"eyJ0eXBl…"}.
type frames struct {
	counter *counter
	frame   []byte // as much of it as has come
	lost    bool   // what came is no frame: where the next one begins is not known
}

const (
	prelude  = 12
	trailer  = 4
	maxFrame = 1<<24 + prelude + trailer // AWS's own bound
)

func (f *frames) write(piece []byte) {
	for len(piece) > 0 && !f.lost {
		want := prelude
		if len(f.frame) >= prelude {
			want = f.length()
		}
		n := min(want-len(f.frame), len(piece))
		f.frame = append(f.frame, piece[:n]...)
		piece = piece[n:]
		switch {
		case len(f.frame) == prelude:
			f.begin()
		case len(f.frame) > prelude && len(f.frame) == f.length():
			f.take()
		}
	}
}

func (f *frames) length() int { return int(binary.BigEndian.Uint32(f.frame)) }

func (f *frames) begin() {
	total, headers := binary.BigEndian.Uint32(f.frame), binary.BigEndian.Uint32(f.frame[4:])
	if crc32.ChecksumIEEE(f.frame[:8]) != binary.BigEndian.Uint32(f.frame[8:]) || total > maxFrame ||
		total < prelude+trailer || headers > total-prelude-trailer {
		f.counter.ignored.add(broken)
		f.lost, f.frame = true, nil
	}
}

func (f *frames) take() {
	headers := int(binary.BigEndian.Uint32(f.frame[4:]))
	payload := f.frame[prelude+headers : len(f.frame)-trailer]
	if _, after, ok := bytes.Cut(payload, []byte(`"bytes":"`)); ok {
		inner, _, _ := bytes.Cut(after, []byte(`"`))
		n, err := base64.StdEncoding.Decode(inner, inner) // in place: it is shorter
		if payload = inner[:n]; err != nil {
			payload = nil
		}
	}
	f.counter.write(payload)
	f.counter.end()
	f.frame = f.frame[:0]
}

func (f *frames) end() {}
