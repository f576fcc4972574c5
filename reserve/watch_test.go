package reserve_test

import (
	"context"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/hooks"
)

// A watcher learns of each change of promised times, until it returns false.
func TestWatch(t *testing.T) {
	engine := hooks.Open[*reserve.Policy, *reserve.Limiter, *reserve.Reservation]()
	clock := clockwork.NewFakeClock()
	l := reserve.Must(pace.NewBursty(10, reserve.WithClock(clock)))
	var told []bool
	engine.Watch(l, func(later bool) bool { told = append(told, later); return len(told) < 7 })
	expect := func(want ...bool) {
		t.Helper()
		require.Equal(t, want, told)
		told = told[:0]
	}
	r, err := l.Reserve(context.Background(), 5)
	require.NoError(t, err)
	require.Empty(t, told, "a request changes no promised time")
	r.Settle(4)
	expect(false)
	require.NoError(t, l.SetRate(20))
	expect(false)
	require.NoError(t, l.Retime(10))
	expect(false, true)
	l.PauseUntil(clock.Now().Add(time.Second))
	l.Resume()
	expect(true, false)
	engine.Stop(l, clock.Now().Add(time.Second))
	expect(true)
	engine.Watch(l, func(bool) bool { told = append(told, true); return false })
	l.Resume()
	l.PauseUntil(clock.Now().Add(time.Second))
	require.Equal(t, []bool{false, true, true}, told)
}

func TestParts(t *testing.T) {
	engine := hooks.Open[*reserve.Policy, *reserve.Limiter, *reserve.Reservation]()
	a, b := reserve.Must(pace.NewBursty(1)), reserve.Must(pace.NewBursty(1))
	require.Equal(t, []any{a, b}, engine.Parts(reserve.All(a, b)))
	require.Empty(t, engine.Parts(a))
}
