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
	came    bytes.Buffer // of frames that are not complete
	lost    bool         // what came is no frame: where the next one begins is not known
}

const (
	prelude  = 12
	trailer  = 4
	maxFrame = 1<<24 + prelude + trailer // AWS's own bound
)

func (f *frames) write(piece []byte) {
	if f.lost {
		return
	}
	f.came.Write(piece)
	for came := f.came.Bytes(); len(came) >= prelude; came = f.came.Bytes() {
		total, headers := binary.BigEndian.Uint32(came), binary.BigEndian.Uint32(came[4:])
		if crc32.ChecksumIEEE(came[:8]) != binary.BigEndian.Uint32(came[8:]) || total > maxFrame ||
			total < prelude+trailer || headers > total-prelude-trailer {
			f.counter.ignored.add(&f.counter.ignored.Broken)
			*f = frames{counter: f.counter, lost: true}
			return
		}
		if len(came) < int(total) {
			return
		}
		frame := f.came.Next(int(total))
		f.fails(frame[prelude : prelude+headers])
		f.take(frame[prelude+headers : total-trailer])
	}
}

// fails reads a header: its name's length, its name, 7 for a string, the length of that in two bytes, and the string.
func (f *frames) fails(headers []byte) {
	_, value, ok := bytes.Cut(headers, []byte(":exception-type\x07"))
	if !ok || len(value) < 2 {
		return
	}
	n := min(2+int(binary.BigEndian.Uint16(value)), len(value))
	f.counter.value(ofError, value[2:n], true)
}

func (f *frames) take(payload []byte) {
	if _, after, ok := bytes.Cut(payload, []byte(`"bytes":"`)); ok {
		inner, _, _ := bytes.Cut(after, []byte(`"`))
		n, err := base64.StdEncoding.Decode(inner, inner) // in place: it is shorter
		if payload = inner[:n]; err != nil {
			payload = nil
		}
	}
	f.counter.write(payload)
	f.counter.end()
}

func (f *frames) end() {}
