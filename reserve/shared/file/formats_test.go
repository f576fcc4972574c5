package file

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/judge/limitertest"
)

// What FORMATS.md shows is what is written, and can be read.
func TestFormats(t *testing.T) {
	e := entry{number: 7, offset: head, length: 100, room: smallest, until: 1_790_000_000e9, checksum: 0xe3069283}
	vector := limitertest.Vector(t, "file")
	require.Equal(t, hex.EncodeToString(vector), hex.EncodeToString(e.append(nil)))
	read, ok := parse(vector)
	require.True(t, ok)
	require.Equal(t, e, read)
}
