package engine

import (
	"math/bits"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// What each request writes begins a cache line, and the limiter fills whole ones.
func TestLayout(t *testing.T) {
	if bits.UintSize != 64 {
		return // the padding is counted for 64 bits; elsewhere it is only less useful
	}
	require.Equal(t, uintptr(64), unsafe.Offsetof(Limiter{}.mu))
	require.Zero(t, unsafe.Sizeof(smoothLimiter{})%64)
}
