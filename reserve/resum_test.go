package reserve

import (
	"encoding/binary"
	"hash/crc32"
)

// Resum returns a state with the checksum that its bytes should have.
func Resum(state []byte) []byte {
	if len(state) < 4 {
		return state
	}
	body := append([]byte(nil), state[:len(state)-4]...)
	return binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, castagnoli))
}
