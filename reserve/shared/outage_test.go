package shared

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// A generous server grants everything at once, in the bubble's time, and counts what it charged.
type generous struct {
	down, deaf, late bool // refuses; its answers are lost; is asked after the caller has given up
	asked, charged   int
}

func (s *generous) EvalInts(ctx context.Context, _ *Script, _ string, args ...any) ([]int64, error) {
	s.asked++
	if s.down {
		return nil, errors.New("connection refused")
	}
	if s.late {
		<-ctx.Done()
		time.Sleep(time.Millisecond)
	}
	now := time.Now().UnixMicro()
	answer := []int64{now}
	if notAfter := args[1].(int64); notAfter == 0 || now <= notAfter {
		answer = append(answer, make([]int64, header-1)...)
		answer[3] = 1000 // stored
		for i := 5; i < len(args); i += 2 {
			s.charged += args[i].(int)
			answer = append(answer, 0)
		}
	}
	if s.deaf || s.late {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return answer, nil
}

// outage runs a test with a limiter of 10/s, that stores 20.
func outage(t *testing.T, mode Option, test func(t *testing.T, l *Limiter, s *generous)) {
	synctest.Test(t, func(t *testing.T) {
		s := &generous{}
		l, err := New(s, "outage", reserve.Must(pace.Bursty(10, pace.WithCapacity(20))), mode)
		require.NoError(t, err)
		test(t, l, s)
	})
}

// grants returns how many of n requests are granted at once.
func grants(t *testing.T, l *Limiter, n int) (granted int) {
	for range n {
		ok, err := l.TryAcquire(t.Context(), 1)
		require.NoError(t, err)
		if ok {
			granted++
		}
	}
	return granted
}

// Answers are lost, and somebody tries again now and then: what was granted meanwhile is
// charged once, when the server is back.
func TestOwedIsChargedOnce(t *testing.T) {
	outage(t, FailOpen(), func(t *testing.T, l *Limiter, s *generous) {
		_, err := l.Stored(t.Context())
		require.NoError(t, err)
		s.deaf, s.asked = true, 0
		for range 40 {
			require.Equal(t, 1, grants(t, l, 1))
			time.Sleep(30 * time.Millisecond)
		}
		require.Equal(t, s.asked, s.charged, "only those that asked, themselves")
		s.deaf, s.charged = false, 0
		time.Sleep(2 * time.Second) // and what the others were granted has flowed in again
		_, err = l.Stored(t.Context())
		require.NoError(t, err)
		require.Equal(t, 15, grants(t, l, 15))
		s.down = true
		require.Equal(t, 5, grants(t, l, 5))
		s.down, s.charged = false, 0
		time.Sleep(60 * time.Millisecond) // longer than the circuit is open
		for range 3 {
			_, err = l.Stored(t.Context())
			require.NoError(t, err)
		}
		require.Equal(t, 5, s.charged) // 4.4, in whole permits
	})
}

// What has flowed in since the outage is not charged.
func TestOwedHasAnAge(t *testing.T) {
	for after, want := range map[time.Duration]int{
		time.Second: 10, 1500 * time.Millisecond: 5, 2 * time.Second: 0, time.Hour: 0,
	} {
		outage(t, FailOpen(), func(t *testing.T, l *Limiter, s *generous) {
			s.down = true
			require.Equal(t, 50, grants(t, l, 50))
			s.down = false
			time.Sleep(after)
			for range 3 {
				_, err := l.Stored(t.Context())
				require.NoError(t, err)
			}
			require.Equal(t, want, s.charged, "after %v", after)
			require.Zero(t, l.Owed())
		})
	}
}

// The keys that were used during an outage are forgotten like others.
func TestKeysOfAnOutageAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &generous{down: true}
		k, err := NewKeyed(s, reserve.Must(pace.Bursty(10)), FailOpen())
		require.NoError(t, err)
		use := func(name string) {
			for i := range 500 {
				_, err := k.TryAcquire(t.Context(), fmt.Sprint(name, i), 1)
				require.NoError(t, err)
			}
		}
		use("during ")
		require.Equal(t, 500, k.Len(), "all of them owe")
		s.down = false
		time.Sleep(2 * time.Second)
		use("after ")
		require.Less(t, k.Len(), 50)
	})
}

// A first call that reaches the server after its caller has given up is not charged either.
func TestFirstCallTooLate(t *testing.T) {
	outage(t, FailClosed(), func(t *testing.T, l *Limiter, s *generous) {
		s.late = true
		_, err := l.Reserve(t.Context(), 5)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1, s.asked)
		require.Zero(t, s.charged)
		s.late = false
		_, err = l.Reserve(t.Context(), 5)
		require.NoError(t, err)
		require.Equal(t, 5, s.charged)
	})
}

// Only the first key of many costs a second round trip.
func TestKeysShareTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &generous{}
		k, err := NewKeyed(s, reserve.Must(pace.Bursty(10)))
		require.NoError(t, err)
		for i := range 10 {
			_, err := k.TryAcquire(t.Context(), fmt.Sprint(i), 1)
			require.NoError(t, err)
		}
		require.Equal(t, 11, s.asked)
	})
}

// The fallback does not grant in a second outage what it stored while the server answered.
func TestSecondOutage(t *testing.T) {
	outage(t, Local(0.5), func(t *testing.T, l *Limiter, s *generous) {
		for range 3 {
			s.down = true
			require.Equal(t, 1, grants(t, l, 40))
			s.down = false
			time.Sleep(time.Minute)
			_, err := l.Stored(t.Context())
			require.NoError(t, err)
		}
	})
}

// It does not forget its debt.
func TestSecondOutageAtOnce(t *testing.T) {
	outage(t, Local(0.05), func(t *testing.T, l *Limiter, s *generous) { // 0.5/s
		s.down = true
		require.Equal(t, 1, grants(t, l, 40))
		s.down = false
		time.Sleep(time.Second)
		_, err := l.Stored(t.Context())
		require.NoError(t, err)
		s.down = true
		require.Zero(t, grants(t, l, 40))
	})
}

// A server that refuses is down, however little time the callers have.
func TestRefusedConnectionsCount(t *testing.T) {
	outage(t, FailOpen(), func(t *testing.T, l *Limiter, s *generous) {
		s.down = true
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Millisecond)
			_, err := l.Reserve(ctx, 1)
			require.NoError(t, err)
			cancel()
		}
		require.Equal(t, tolerated, s.asked)
	})
}

// A context that is done is told so, also where Redis need not be asked.
func TestTryAcquireOfAContextThatIsDone(t *testing.T) {
	outage(t, FailClosed(), func(t *testing.T, l *Limiter, s *generous) {
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		l.busy.Store(l.now() + int64(time.Second))
		ok, err := l.TryAcquire(ctx, 1)
		require.False(t, ok)
		require.ErrorIs(t, err, gone)
		require.Zero(t, s.asked)
	})
}

// Two calls may report at the same time (under the race detector).
func TestCircuitReports(t *testing.T) {
	var c circuit
	var all sync.WaitGroup
	for _, err := range []error{nil, nil, errors.New("down"), errors.New("down")} {
		all.Go(func() {
			for range 1000 {
				c.report(0, false, err, true)
			}
		})
	}
	all.Wait()
	c.report(0, false, nil, true)
	probe, err := c.enter(0)
	require.False(t, probe)
	require.NoError(t, err)
}
