package conform

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
)

// A subject is a limiter that the model judges: the real one, or, to see that a fault would be
// found, the model with one. Times are nanoseconds since it was made.
type subject interface {
	advance(d time.Duration)
	reserve(n int, maxWait time.Duration) (id int, wait time.Duration, ok bool)
	tryAcquire(n int) bool
	settle(id, actual int)
	at(id int) time.Duration
	nextFree() time.Duration // never before now
	stored() float64
}

// A tuned subject has what a program with pauses and new rates needs.
type tuned interface {
	subject
	pause(until time.Duration)
	resume()
	setRate(rate float64)
	retime(rate float64)
}

// A realSubject is the limiter of the library.
type realSubject struct {
	clock   *clockwork.FakeClock
	begin   time.Time
	limiter *reserve.Limiter
	held    []*reserve.Reservation
}

var epoch = time.Unix(1_700_000_000, 0)

func (k kind) real(tb testing.TB) *realSubject {
	return k.realOn(tb, clockwork.NewFakeClockAt(epoch))
}

func (k kind) realOn(tb testing.TB, clock *clockwork.FakeClock) *realSubject {
	limiter, err := k.limiter(reserve.WithClock(clock))
	require.NoError(tb, err)
	return &realSubject{clock: clock, begin: clock.Now(), limiter: limiter}
}

func (s *realSubject) advance(d time.Duration) { s.clock.Advance(d) }

// deadline is a context that ends at a time of the fake clock.
type deadline struct {
	context.Context
	at time.Time
}

func (d deadline) Deadline() (time.Time, bool) { return d.at, true }

// reserve says how long it is willing to wait by either of the two ways.
func (s *realSubject) reserve(n int, maxWait time.Duration) (int, time.Duration, bool) {
	ctx, within := context.Background(), maxWait
	if maxWait%2 == 1 && maxWait < reserve.Forever {
		ctx, within = deadline{ctx, s.clock.Now().Add(maxWait)}, reserve.Forever
	}
	r, err := s.limiter.ReserveWithin(ctx, n, within)
	return s.hold(&r, err)
}

// never is the wait of a request that waiting does not help.
const never = -1

func (s *realSubject) hold(r *reserve.Reservation, err error) (int, time.Duration, bool) {
	var refused *reserve.WaitError
	switch {
	case err == nil:
		s.held = append(s.held, r)
		return len(s.held) - 1, r.Delay(), true
	case errors.As(err, new(*reserve.SizeError)): // nobody waits, and there are never so many at once
		return 0, never, false
	case errors.As(err, &refused):
		return 0, refused.Wait, false
	default:
		panic(err)
	}
}

func (s *realSubject) tryAcquire(n int) bool { return s.limiter.TryAcquire(n) }

func (s *realSubject) settle(id, actual int) {
	if actual == 0 {
		s.held[id].Cancel()
	} else {
		s.held[id].Settle(actual)
	}
}

func (s *realSubject) at(id int) time.Duration { return s.held[id].At().Sub(s.begin) }

func (s *realSubject) nextFree() time.Duration {
	return max(s.clock.Since(s.begin), s.limiter.NextFree().Sub(s.begin))
}

func (s *realSubject) stored() float64           { return s.limiter.Stored() }
func (s *realSubject) pause(until time.Duration) { s.limiter.PauseUntil(s.begin.Add(until)) }
func (s *realSubject) resume()                   { s.limiter.Resume() }

func (s *realSubject) retime(rate float64) {
	if err := s.limiter.Retime(rate); err != nil {
		panic(err)
	}
}

func (s *realSubject) setRate(rate float64) {
	if err := s.limiter.SetRate(rate); err != nil {
		panic(err)
	}
}

// A keySubject is one key of many. Its limiter can't be tuned, and does not tell what is stored.
type keySubject struct {
	realSubject
	keys *keyed.Limiters[string]
}

const key = "key"

func (k kind) subject(tb testing.TB, oneOfMany bool) subject {
	if oneOfMany {
		return k.key(tb)
	}
	return k.real(tb)
}

func (k kind) key(tb testing.TB) *keySubject {
	clock := clockwork.NewFakeClockAt(epoch)
	p, err := k.policy(reserve.WithClock(clock))
	require.NoError(tb, err)
	s := &keySubject{keys: keyed.New(func(string) (*reserve.Policy, error) { return p, nil })}
	s.clock, s.begin = clock, clock.Now()
	return s
}

func (s *keySubject) reserve(n int, maxWait time.Duration) (int, time.Duration, bool) {
	r, err := s.keys.ReserveWithin(context.Background(), key, n, maxWait)
	return s.hold(&r, err)
}

func (s *keySubject) tryAcquire(n int) bool { return s.keys.TryAcquire(key, n) }

func (s *keySubject) nextFree() time.Duration {
	return s.clock.Since(s.begin) + reserve.Must(s.keys.Peek(key, 1))
}

func (s *keySubject) stored() float64 { return math.NaN() }
