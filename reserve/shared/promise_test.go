package shared

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// slowly answers after half a second, in the bubble's time: a promise for a second later.
type slowly struct{ refunds []int }

func (s *slowly) Eval(_ context.Context, _ *Script, _ string, arg []byte) ([]byte, error) {
	time.Sleep(500 * time.Millisecond)
	answer := doubles(nil, 1_790_000_000_000_000, 1_790_000_000_000_000, 1, 0, 1e9, 0)
	_, refunds, _ := asked(arg)
	s.refunds = append(s.refunds, refunds)
	if refunds == 0 {
		answer = doubles(answer, 1e9)
	}
	return answer, nil
}

func bubbled(t *testing.T, test func(t *testing.T, l *Limiter, s *slowly)) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowly{}
		l, err := New(s, "bubble", reserve.Must(pace.Bursty(1)), WithTimeout(time.Minute))
		require.NoError(t, err)
		test(t, l, s)
	})
}

// A sleeping caller is woken when somebody cancels the reservation.
func TestCancelWakes(t *testing.T) {
	bubbled(t, func(t *testing.T, l *Limiter, s *slowly) {
		r, err := l.Reserve(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, time.Second, r.Delay())
		done := make(chan error, 1)
		go func() { done <- r.Wait(context.Background()) }()
		synctest.Wait()
		begin := time.Now()
		r.Cancel()
		require.ErrorIs(t, <-done, reserve.ErrCancelled)
		require.Equal(t, 500*time.Millisecond, time.Since(begin), "the time of the call")
	})
}

// An answer that comes so late that the promise misses the deadline is given back.
func TestAnswerTooLate(t *testing.T) {
	bubbled(t, func(t *testing.T, l *Limiter, s *slowly) {
		ctx, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
		defer cancel()
		_, err := l.Reserve(ctx, 1)
		var refused *reserve.WaitError
		require.ErrorAs(t, err, &refused)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []int{0, 1}, s.refunds)
	})
}
