package file

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/judge/limitertest"
)

// What FORMATS.md shows is what is written, and can be read.
func TestFormats(t *testing.T) {
	e := entry{Number: 7, Until: 1_790_000_000e9, Length: 100, Check: 0xe3069283}
	vector := limitertest.Vector(t, "file")
	require.Equal(t, hex.EncodeToString(vector), hex.EncodeToString(e.bytes()))
	read, ok := parse(vector)
	require.True(t, ok)
	require.Equal(t, e, read)
}
