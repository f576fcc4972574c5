package queue

import (
	"context"
	"math"
	"time"

	"github.com/nextfree/pace/internal/limit"
)

var _ limit.Limit = (*Places)(nil)

func (s *Places) Take(ctx context.Context, n int, maxWait time.Duration, _ bool) (t limit.Taken, err error) {
	t.Reservation, err = s.ReserveWithin(ctx, n, maxWait)
	return
}

// Rate is no limit's: places bound how many are out.
func (s *Places) Rate() float64 { return math.Inf(1) }

func (s *Places) Traits() limit.Traits { return limit.Traits{Silent: true, InFlight: true} }

// Peek returns 0 if a place is free; else reserve.Forever: nobody knows.
func (s *Places) Peek(int) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free() {
		return 0, nil
	}
	return unknown, nil
}
