package bykey

import (
	"context"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
)

// A state is what is remembered of a key's limiter.
type state struct {
	policy  *engine.Policy
	compact compact
	whole   *engine.Limiter // nil: compact holds the state
}

func newState(p *engine.Policy, begin int64) state {
	if t := p.Terms(); t.Curve != nil {
		return state{policy: p, compact: newCompact(t, begin)}
	}
	return state{policy: p, whole: p.New(begin)}
}

func (s *state) limiter() *engine.Limiter {
	if s.whole == nil {
		s.whole = s.compact.grow(s.policy)
	}
	return s.whole
}

func (s *state) copied() *engine.Limiter {
	if s.whole == nil {
		return s.compact.grow(s.policy)
	}
	return s.whole
}

func (s *state) tryAcquire(n int) bool {
	if s.whole == nil {
		return s.compact.tryAcquire(s.policy, n)
	}
	return s.whole.TryAcquire(n)
}

// take takes permits that are available now, or none. The error is that of a request that no wait helps.
func (s *state) take(ctx context.Context, n int) (had bool, err error) {
	if s.whole == nil {
		_, had, err = s.compact.take(ctx, s.policy, n)
		return had, err
	}
	var r engine.Reservation
	err = s.whole.Reserve(ctx, n, 0, &r)
	return err == nil, nil // the reservation that follows has the error
}

// reserve leaves the limiter compact if it refuses.
func (s *state) reserve(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error) {
	if s.whole == nil {
		if err := s.policy.Check(ctx, &s.compact.state, n, maxWait); err != nil {
			return reserve.Reservation{}, err
		}
	}
	return (*reserve.Limiter)(s.limiter()).ReserveWithin(ctx, n, maxWait)
}

func (s *state) peek(n int) (time.Duration, error) {
	if s.whole == nil {
		return s.compact.wait(s.policy, n), nil
	}
	return (*reserve.Limiter)(s.whole).Peek(n)
}

func (s *state) outlook() engine.Outlook {
	if s.whole == nil {
		return s.compact.outlook(s.policy, s.policy.Terms().Now())
	}
	return s.whole.Outlook()
}

func (s *state) charge(n int) {
	if s.whole == nil {
		s.compact.charge(s.policy, n)
	} else {
		s.whole.Charge(n)
	}
}
