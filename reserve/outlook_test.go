package reserve_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/warmup"
)

func engineOf(l *reserve.Limiter) *engine.Limiter { return (*engine.Limiter)(l) }

func TestOutlook(t *testing.T) {
	clock := clockwork.NewFakeClock()
	own := reserve.WithClock(clock)
	for _, c := range []struct {
		name  string
		l     *reserve.Limiter
		take  int
		pause time.Duration
		want  engine.Outlook
	}{
		{"stored", reserve.Must(pace.NewBursty(10, own, reserve.WithStored(10))), 6, 0, engine.Outlook{Rate: 10, Capacity: 10, Stored: 4}},
		{"in debt", reserve.Must(pace.NewBursty(10, own)), 6, 0, engine.Outlook{Rate: 10, Capacity: 10, Wait: 600 * ms}},
		{"upfront", reserve.Must(pace.NewBursty(10, own, reserve.PayUpfront())), 6, 0, engine.Outlook{Rate: 10, Capacity: 10, Wait: 700 * ms}},
		{"paused", reserve.Must(pace.NewBursty(10, own)), 1, 5 * s, engine.Outlook{Rate: 10, Capacity: 10, Wait: 5100 * ms}},
		{"warm-up", reserve.Must(warmup.New(2, 4*s, own)), 1, 0, engine.Outlook{Rate: 2, Wait: 1375 * ms}},
		{"window", reserve.Must(window.New(5, time.Minute, own)), 2, 0, engine.Outlook{Rate: 5. / 60, Capacity: 5, Stored: 3, Window: true}},
		{"full window", reserve.Must(window.New(5, time.Minute, own)), 5, 0, engine.Outlook{Rate: 5. / 60, Capacity: 5, Wait: time.Minute, Window: true}},
		{"no limit", reserve.Must(pace.NewBursty(math.Inf(1), own)), 5, 0, engine.Outlook{Rate: math.Inf(1), Capacity: math.Inf(1), Stored: math.Inf(1)}},
	} {
		_, err := c.l.Reserve(context.Background(), c.take)
		require.NoError(t, err, c.name)
		c.l.PauseUntil(clock.Now().Add(c.pause))
		c.want.MaxWait = reserve.Forever
		require.Equal(t, c.want, engineOf(c.l).Outlook(), c.name)
		require.Equal(t, c.want, engineOf(c.l).Latest(), c.name)
	}

	l := reserve.Must(pace.NewBursty(10, own))
	require.NoError(t, l.SetRate(20))
	require.Equal(t, engine.Outlook{Rate: 20, Capacity: 20, MaxWait: reserve.Forever}, engineOf(l).Outlook())

	clock.Advance(100 * ms)
	require.Equal(t, 2., engineOf(l).Outlook().Stored)
	clock.Advance(100 * ms)
	require.Equal(t, 2., engineOf(l).Latest().Stored, "as of the latest request")
}
