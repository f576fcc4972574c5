package reserve_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/allornothing"
	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/reserve"
)

// A watcher learns of each change of promised times that its owner does not make, until it is forgotten.
func TestWatch(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := reserve.Must(pace.NewBursty(10, reserve.WithClock(clock)))
	var told []bool
	w := &engine.Watcher{Owner: "me", Tell: func(later bool) { told = append(told, later) }}
	engineOf(l).Watch(w)
	engineOf(l).Watch(w)
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
	for _, by := range []any{"me", "you"} {
		r, err = l.ReserveWithin(context.Background(), 1, reserve.Forever)
		require.NoError(t, err)
		(*engine.Reservation)(&r).CancelBy(by)
	}
	expect(false)
	runtime.KeepAlive(w)
}

// Watchers that nobody keeps take no memory for ever: 48 bytes each, before, at a limiter that never changes.
func TestWatchersThatAreGone(t *testing.T) {
	l := reserve.Must(pace.NewBursty(10))
	for range 40 {
		for range 1000 {
			engineOf(l).Watch(&engine.Watcher{Tell: func(bool) {}})
		}
		runtime.GC()
	}
	require.Less(t, engineOf(l).Watchers(), 10_000)
}

func TestParts(t *testing.T) {
	a, b := reserve.Must(pace.NewBursty(1)), reserve.Must(pace.NewBursty(1))
	require.Equal(t, []reserve.Reserver{a, b}, allornothing.PartsOf(reserve.All(a, b)))
	require.Nil(t, allornothing.PartsOf[reserve.Reserver](a))
	require.NotNil(t, allornothing.PartsOf(reserve.All()))
}
