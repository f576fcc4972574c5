package pool_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/pool"
)

// A nest is pools, queues and All around one limiter, and other limits that are never in the way.
func nest(random *rand.Rand, l reserve.Reserver, depth int) (by reserve.Reserver, name string) {
	if depth == 0 {
		return l, "l"
	}
	in, name := nest(random, l, depth-1)
	switch random.IntN(8) {
	case 0:
		return reserve.Must(pool.New([]pool.Member[int]{{By: in}})).Reserver(), "pool(" + name + ")"
	case 1:
		return reserve.Must(pool.New([]pool.Member[int]{{By: in}, {By: in}})).Reserver(), "pool2(" + name + ")"
	case 2:
		return reserve.Must(fair.New(in, []fair.Class{{Name: "c"}})), "fair(" + name + ")"
	case 3:
		own := fair.Class{Name: "c", Limit: even(1e6), MaxAge: time.Second}
		return reserve.Must(fair.New(in, []fair.Class{own}, fair.WithTenants(nil))).Class("c"), "class(" + name + ")"
	case 4:
		return reserve.All(even(1e6), in), "all(" + name + ")"
	case 5:
		return wrapped{in}, "custom(" + name + ")"
	case 6:
		keys := keyed.New(func(string) (*reserve.Policy, error) { return pace.Bursty(1e6, pace.WithBurst(time.Second)) })
		return reserve.Must(fair.New(reserve.All(in, keys.For("k")), []fair.Class{{Name: "c"}})), "fair(key " + name + ")"
	}
	closed := reserve.Must(pool.New([]pool.Member[int]{{By: in}, {By: even(1e6)}}))
	closed.Drop(1)
	return closed.Reserver(), "dropped(" + name + ")"
}

// A wrapped is a Reserver of the user's, which may not be comparable.
type wrapped struct{ by reserve.Reserver }

func (c wrapped) ReserveWithin(ctx context.Context, n int, d time.Duration) (reserve.Reservation, error) {
	return c.by.ReserveWithin(ctx, n, d)
}

type wish struct {
	at, within time.Duration
	n          int
	cancel     time.Duration // 0: no
	back       int           // settled at that, when it is granted; -1: no
}

type outcome struct {
	granted bool
	at      time.Duration
}

func play(t *testing.T, by reserve.Reserver, wishes []wish, change func()) (all []outcome) {
	all = make([]outcome, len(wishes))
	begin := time.Now()
	var wait sync.WaitGroup
	change()
	for i, w := range wishes {
		wait.Go(func() {
			time.Sleep(w.at)
			ctx, cancel := context.WithDeadline(background, begin.Add(w.within))
			defer cancel()
			if w.cancel > 0 {
				time.AfterFunc(w.cancel-w.at, cancel)
			}
			var r reserve.Reservation
			var err error
			if r, err = by.ReserveWithin(ctx, w.n, reserve.Forever); err == nil {
				err = r.Wait(ctx)
			}
			if over := time.Since(begin) - w.within; over > 0 {
				t.Errorf("%d: %v after its deadline", i, over)
			}
			all[i] = outcome{err == nil, time.Since(begin)}
			if err == nil && w.back >= 0 {
				time.Sleep(5 * time.Nanosecond)
				r.Settle(w.back)
			}
		})
	}
	wait.Wait()
	return all
}

// tookIn reports whether a caller that the one refuses waited longer in the other, before it was refused.
func tookIn(a, b []outcome) (yes bool) {
	for i := range a {
		yes = yes || !a[i].granted && (b[i].granted || b[i].at > a[i].at)
	}
	return yes
}

// Whatever stands in front of one limiter, each caller gets what it would from that limiter.
func TestANestIsALimiter(t *testing.T) {
	skipped, all := uint64(0), rounds(300, 20000)
	for seed := range all {
		random := rand.New(rand.NewPCG(seed, 7))
		var wishes []wish
		at := time.Duration(0)
		refunds := random.IntN(2) == 0
		sizes := 1
		if !refunds {
			sizes = 1 + random.IntN(3)
		}
		for i := range 2 + random.IntN(8) {
			at += time.Duration(random.IntN(8))*250*time.Millisecond + time.Duration(16*i)
			w := wish{at: at, n: 1 + random.IntN(sizes), back: -1}
			w.within = w.at.Round(250*time.Millisecond) + time.Duration(1+random.IntN(40))*250*time.Millisecond
			if refunds && random.IntN(4) == 0 {
				w.cancel = w.at + time.Duration(1+random.IntN(20))*125*time.Millisecond
			}
			if refunds && random.IntN(4) == 0 {
				w.back = random.IntN(2)
			}
			wishes = append(wishes, w)
		}
		pauses := time.Duration(random.IntN(20)) * 500 * time.Millisecond
		var results [2][]outcome
		var name string
		for k := range results {
			synctest.Test(t, func(t *testing.T) {
				l := even(1)
				by := reserve.Reserver(l)
				if k == 1 {
					by, name = nest(random, l, 1+random.IntN(3))
				}
				results[k] = play(t, by, wishes, func() {
					if pauses > 5*time.Second {
						time.AfterFunc(pauses-5*time.Second+7, func() { l.PauseUntil(time.Now().Add(2 * time.Second)) })
					}
				})
				time.Sleep(time.Minute)
			})
		}
		if tookIn(results[0], results[1]) {
			skipped++
			continue // a forecast that is too early, so that others are refused
		}
		require.Equal(t, results[0], results[1], fmt.Sprintf("seed %d: %s: %+v", seed, name, wishes))
	}
	require.Less(t, skipped, all/5)
}
