//go:build !race

package window_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

// Once the ring has its size, nothing allocates. (The race detector allocates by itself.)
func TestAllocations(t *testing.T) {
	l := reserve.Must(window.New(64, 50*time.Microsecond))
	full := reserve.Must(window.New(1, time.Hour))
	full.Allow()
	for range 1000 {
		_, _ = l.Reserve(ctx, 3)
	}
	for name, call := range map[string]func(){
		"TryAcquire": func() { l.TryAcquire(1) },
		"refused":    func() { full.TryAcquire(1) },
		"Reserve and Cancel": func() {
			r, _ := l.Reserve(ctx, 5)
			r.Cancel()
		},
		"Settle": func() {
			r, _ := l.Reserve(ctx, 2)
			r.Settle(3)
		},
		"the rest": func() { _, _, _ = l.Stored(), l.NextFree(), l.Rate() },
	} {
		require.Zero(t, testing.AllocsPerRun(100, call), name)
	}
}
