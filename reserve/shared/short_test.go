package shared_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/server"
	"github.com/nextfree/pace/internal/watchdog"
	"github.com/nextfree/pace/reserve"
)

// Callers with too little time for a call fail by themselves: the callers behind
// their call are answered.
func TestAShortDeadlineFailsNobodyElse(t *testing.T) {
	watchdog.Start(t)
	l := newShared(t, connect(t, server.Start(t)), "short", reserve.Must(pace.Bursty(1e6)))
	var all sync.WaitGroup
	for g := range 16 {
		all.Go(func() {
			for range 200 {
				if g%2 == 0 {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Microsecond)
					_, _ = l.ReserveWithin(ctx, 1, reserve.Forever)
					cancel()
					continue
				}
				if _, err := l.ReserveWithin(t.Context(), 1, reserve.Forever); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
