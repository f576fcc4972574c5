package reserve_test

import (
	"context"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/allornothing"
	"github.com/nextfree/pace/reserve"
)

// A watcher learns of each change of promised times, until it returns false.
func TestWatch(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := reserve.Must(pace.NewBursty(10, reserve.WithClock(clock)))
	var told []bool
	engineOf(l).Watch(func(later bool) bool { told = append(told, later); return len(told) < 7 })
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
	expect(true)
	require.NoError(t, l.Retime(10))
	expect(true)
	l.PauseUntil(clock.Now().Add(time.Second))
	l.Resume()
	expect(true, false)
	engineOf(l).Stop(clock.Now().Add(time.Second))
	expect(true)
	engineOf(l).Watch(func(bool) bool { told = append(told, true); return false })
	l.Resume()
	l.PauseUntil(clock.Now().Add(time.Second))
	require.Equal(t, []bool{false, true, true}, told)
}

func TestParts(t *testing.T) {
	a, b := reserve.Must(pace.NewBursty(1)), reserve.Must(pace.NewBursty(1))
	require.Equal(t, []reserve.Reserver{a, b}, allornothing.PartsOf(reserve.All(a, b)))
	require.Nil(t, allornothing.PartsOf[reserve.Reserver](a))
	require.NotNil(t, allornothing.PartsOf(reserve.All()))
}
