package reserve_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/variant"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/smooth"
)

// An opening grants nothing until a day is over, or it is opened.
type opening struct {
	engine.Ledger
	open *atomic.Bool
}

func (o opening) Take(now int64, n int) bool { return o.open.Load() || o.Ledger.Take(now, n) }

func (o opening) NextFree(now int64) int64 {
	if o.open.Load() {
		return now
	}
	return now + int64(24*time.Hour)
}

func (o opening) Ready(now int64, number uint64) (int64, bool) {
	if o.open.Load() {
		return 0, false
	}
	return o.Ledger.Ready(now, number)
}

// Times that become earlier by themselves, as when a machine has slept over midnight, are seen within a minute.
func TestRecheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := new(atomic.Bool)
		policy := pace.Must(variant.Variant{
			Package: "test", Limiter: "an opening", Recheck: time.Minute,
			Ledger: func(now int64, _ func(int64) time.Time) engine.Ledger {
				slow := &smooth.Curve{Rate: 1. / 86400, Interval: 86400e9}
				return opening{smooth.New(slow, now, 0, true), open}
			},
		}.Policy(1))
		l := policy.Limiter()
		require.False(t, l.TryAcquire(1))
		waited := make(chan time.Duration)
		for range 3 {
			go func() {
				d, err := l.Acquire(context.Background(), 1)
				require.NoError(t, err)
				waited <- d
			}()
		}
		time.Sleep(time.Hour)
		open.Store(true)
		for range 3 {
			require.LessOrEqual(t, <-waited, time.Hour+time.Minute)
		}
		time.Sleep(time.Minute)
		require.True(t, l.TryAcquire(1))
	})
}
