package shared

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared/internal/leases"
)

// Of a lease that is paid upfront twice something goes back: not the same stretch.
func TestALeaseGoesBackInParts(t *testing.T) {
	terms, err := newTerms(Terms(reserve.Must(pace.Bursty(1000, pace.WithCapacity(5)))).Curve, true)
	require.NoError(t, err)
	lot := slot{number: 1, permits: 25, stored: 5, begin: 7e6, terms: terms}.lot(0)
	left := 25
	stretch := func(permits int) (begin, length float64) {
		r := refundOf(leases.Refund{Lot: lot, Left: left, Permits: permits})
		left -= permits
		require.Equal(t, permits, r.permits)
		back := r.comeback(terms)
		return back.begin, back.length
	}
	begin, length := stretch(8)
	require.InDelta(t, 7e6, begin, 1)
	require.InDelta(t, 8e6, length, 1)
	begin, length = stretch(10)
	require.InDelta(t, 15e6, begin, 1)
	require.InDelta(t, 10e6, length, 1)
	begin, length = stretch(7) // of these 5 came out of the store
	require.InDelta(t, 25e6, begin, 1)
	require.InDelta(t, 2e6, length, 1)
}

// A call's answer is lost: Redis was charged for what that asked for, and not for callers that joined
// the line meanwhile, and were granted without Redis.
func TestALostLeasePaysForItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &generous{}
		l, err := New(s, "lost", reserve.Must(pace.Bursty(1000)), WithLease(100*time.Millisecond), FailOpen())
		require.NoError(t, err)
		_, err = l.Stored(t.Context())
		require.NoError(t, err)
		s.deaf = true
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if _, err := l.Reserve(context.Background(), 1); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(time.Millisecond)
		}
		all.Wait()
		require.Equal(t, 1, s.charged)
		require.Equal(t, int64(19), l.Owed())
	})
}

// A lot is ready when its slot was promised: what was stored at the end of the debt, and the rest at the rate. Paid
// upfront the time of the slot is that of the last permit.
func TestLotOfASlot(t *testing.T) {
	curve := Terms(reserve.Must(pace.Bursty(1000, pace.WithCapacity(5)))).Curve
	later, err := newTerms(curve, false)
	require.NoError(t, err)
	upfront, err := newTerms(curve, true)
	require.NoError(t, err)
	for _, c := range []struct {
		name  string
		slot  slot
		ready int64
		want  leases.Lot
	}{
		{"paid later", slot{permits: 25, stored: 5, begin: 7e6, terms: later}, 8e6,
			leases.Lot{AtOnce: 5, Begin: 8e6, End: 28e6}},
		{"paid upfront", slot{permits: 25, stored: 5, begin: 7e6, terms: upfront}, 28e6,
			leases.Lot{AtOnce: 5, Begin: 8e6, End: 28e6}},
		{"stored", slot{permits: 3, stored: 5, terms: upfront}, 1e6, leases.Lot{AtOnce: 3, Begin: 1e6, End: 1e6}},
		{"deferred", slot{permits: 3, begin: 7e6, deferred: true, terms: upfront}, 1e6,
			leases.Lot{AtOnce: 3, Begin: 1e6, End: 1e6}},
	} {
		c.want.Permits, c.want.Ahead, c.want.Interval, c.want.Sale = c.slot.permits, c.slot.begin, 1e6, c.slot
		require.Equal(t, c.want, c.slot.lot(c.ready), c.name)
	}
}

// What a process has bought and not used goes back, also of a lot that is larger than the capacity: its permits were
// for callers of their own, each of whom could have given back its own.
func TestALotLargerThanTheCapacityComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := NewIn(Memory(), "lot", reserve.Must(pace.TokenBucket(10, 5)), WithLease(time.Second))
		require.NoError(t, err)
		ctx := context.Background()
		one, err := NewIn(Memory(), "one", reserve.Must(pace.TokenBucket(10, 5)))
		require.NoError(t, err)
		singles := make([]reserve.Reservation, 9)
		for i := range singles {
			singles[i], err = one.Reserve(ctx, 1)
			require.NoError(t, err)
		}
		s := seller{l}
		p := &leases.Purchase{Permits: 9, MaxWait: int64(time.Minute), Deadline: never}
		s.Buy(ctx, p)
		require.NoError(t, p.Err)
		require.True(t, p.Granted)
		time.Sleep(400 * time.Millisecond)
		for i := range singles[6:] {
			singles[6+i].Cancel()
		}
		want, err := one.Stored(ctx)
		require.NoError(t, err)
		require.NoError(t, s.Refund(ctx, leases.Refund{Lot: p.Lot, Left: 9, Permits: 3}))
		got, err := l.Stored(ctx)
		require.NoError(t, err)
		require.InDelta(t, want, got, 1e-3)
	})
}
