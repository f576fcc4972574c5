package sealed

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What was put in comes out. Nothing comes out of bytes that are cut off or damaged anywhere, or of another kind.
func TestOpen(t *testing.T) {
	before := []byte("before")
	b := End(append(Begin(before, "window"), "ten"...), len(before))[len(before):]
	got, err := Open(b, "window")
	require.NoError(t, err)
	require.Equal(t, "ten", string(got))
	_, err = Open(b, "calendar")
	require.EqualError(t, err, `they are of "window"; want "calendar"`)
	for i := range b {
		_, err = Open(b[:i], "window")
		require.Error(t, err, i)
		for bit := range 8 {
			b[i] ^= 1 << bit
			_, err = Open(b, "window")
			require.Error(t, err, "byte %d, bit %d", i, bit)
			b[i] ^= 1 << bit
		}
	}
	b[4]++
	_, err = Open(b, "window")
	require.EqualError(t, err, "they are of version 3; this pace reads version 2")
}
