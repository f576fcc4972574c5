package inbound

import (
	"context"
	"sync/atomic"
	"time"
)

type tarpit struct {
	longest time.Duration // 0: none is delayed
	places  int64

	stuck   atomic.Int64
	delayed atomic.Uint64
}

// delay returns how long it held a refusal back, and whether the context ended it.
func (t *tarpit) delay(ctx context.Context) (took time.Duration, gone bool) {
	defer t.stuck.Add(-1)
	if t.stuck.Add(1) > t.places {
		return 0, false
	}
	t.delayed.Add(1)
	begin := time.Now()
	timer := time.NewTimer(t.longest)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		gone = true
	}
	return time.Since(begin), gone
}
