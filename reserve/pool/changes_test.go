package pool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/pool"
	"github.com/nextfree/pace/reserve/window"
)

var background = context.Background()

// A custom is a Reserver of the user's, which may take long, err or panic.
type custom struct {
	*reserve.Limiter
	takes time.Duration
	fails func(call int) error
	calls *atomic.Int64
}

func newCustom(l *reserve.Limiter, takes time.Duration, fails func(call int) error) custom {
	return custom{l, takes, fails, new(atomic.Int64)}
}

func (c custom) ReserveWithin(ctx context.Context, n int, d time.Duration) (reserve.Reservation, error) {
	select {
	case <-time.After(c.takes):
	case <-ctx.Done():
		return reserve.Reservation{}, context.Cause(ctx)
	}
	if c.fails != nil {
		if err := c.fails(int(c.calls.Add(1))); err != nil {
			return reserve.Reservation{}, err
		}
	}
	return c.Limiter.ReserveWithin(ctx, n, d)
}

func even(rate float64) *reserve.Limiter {
	return reserve.Must(pace.NewBursty(rate, pace.WithBurst(0)))
}

// A limited is a limit of some kind, and the limiter in it.
type limited struct {
	reserve.Reserver
	pause  func(until time.Time)
	resume func()
}

var kinds = map[string]func() limited{
	"limiter": func() limited { l := even(1); return limited{l, l.PauseUntil, l.Resume} },
	"all": func() limited {
		l := even(1)
		return limited{reserve.All(even(1000), l), l.PauseUntil, l.Resume}
	},
	"all of a key": func() limited {
		keys := keyed.New(func(string) (*reserve.Policy, error) { return pace.Bursty(1000, pace.WithBurst(time.Second)) })
		l := even(1)
		return limited{reserve.All(keys.For("k"), l), l.PauseUntil, l.Resume}
	},
	"key": func() limited {
		keys := keyed.New(func(string) (*reserve.Policy, error) { return pace.Bursty(1, pace.WithBurst(0)) })
		l := keys.For("k").(keyed.Limiter)
		return limited{l, l.PauseUntil, l.Resume}
	},
	"custom": func() limited {
		l := even(1)
		return limited{newCustom(l, 20*time.Millisecond, nil), l.PauseUntil, l.Resume}
	},
	"fair": func() limited {
		l := even(1)
		q := reserve.Must(fair.New(l, []fair.Class{{Name: "c"}}))
		return limited{q.Class("c"), l.PauseUntil, l.Resume}
	},
	"pool": func() limited {
		l := even(1)
		p := reserve.Must(pool.New([]pool.Member[int]{{By: l}}))
		return limited{p.Reserver(), l.PauseUntil, l.Resume}
	},
	"fair of a key": func() limited {
		keys := keyed.New(func(string) (*reserve.Policy, error) { return pace.Bursty(1, pace.WithBurst(0)) })
		l := keys.For("k").(keyed.Limiter)
		return limited{reserve.Must(fair.New(l, []fair.Class{{Name: "c"}})).Class("c"), l.PauseUntil, l.Resume}
	},
}

// Whatever a member's limit is, a caller that waits at one hears that it is paused, and that another is free earlier
// by a refund or after a pause.
func TestChangesWhileACallerWaits(t *testing.T) {
	for name, kind := range kinds {
		for other, another := range kinds {
			t.Run(name+" beside "+other, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a, b := kind(), another()
					owed := func(l limited, n int) *reserve.Reservation {
						r := reserve.Must(l.ReserveWithin(background, n, reserve.Forever))
						go func() { _ = r.Wait(background) }()
						return &r
					}
					owed(a, 20)
					back := owed(b, 4000)
					p := reserve.Must(pool.New([]pool.Member[string]{{Value: "a", By: a.Reserver}, {Value: "b", By: b.Reserver}}))
					begin := time.Now()
					time.AfterFunc(2*time.Second, func() { a.pause(begin.Add(24 * time.Hour)) })
					time.AfterFunc(5*time.Second, back.Cancel)
					lease, err := p.Acquire(background, 1)
					require.NoError(t, err)
					require.Equal(t, "b", lease.Value())
					require.Less(t, time.Since(begin), 12*time.Second)

					c := kind()
					c.pause(time.Now().Add(48 * time.Hour))
					p = reserve.Must(pool.New([]pool.Member[string]{{Value: "a", By: a.Reserver}, {Value: "c", By: c.Reserver}}))
					begin = time.Now()
					time.AfterFunc(10*time.Second, c.resume)
					lease, err = p.Acquire(background, 1)
					require.NoError(t, err)
					require.Equal(t, "c", lease.Value())
					require.Less(t, time.Since(begin), 20*time.Second)
					a.resume()
					time.Sleep(100 * 24 * time.Hour)
				})
			})
		}
	}
}

// A refund, a resume or a pause that comes while the pool asks a slow member counts.
func TestChangesWhileAMemberIsAsked(t *testing.T) {
	for name, change := range map[string]func(b *reserve.Limiter, back *reserve.Reservation, p *pool.Pool[string]){
		"refund": func(_ *reserve.Limiter, back *reserve.Reservation, _ *pool.Pool[string]) { back.Cancel() },
		"settle": func(_ *reserve.Limiter, back *reserve.Reservation, _ *pool.Pool[string]) { back.Settle(1) },
		"rate":   func(b *reserve.Limiter, _ *reserve.Reservation, _ *pool.Pool[string]) { _ = b.Retime(1000) },
		"resume": func(_ *reserve.Limiter, back *reserve.Reservation, p *pool.Pool[string]) {
			back.Cancel()
			p.Resume(1)
		},
	} {
		for _, after := range []time.Duration{0, 500 * time.Millisecond, 999999999} {
			t.Run(fmt.Sprint(name, " after ", after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a, b := even(1), even(1)
					a.TryAcquire(600)
					back := reserve.Must(b.Reserve(background, 1000))
					p := reserve.Must(pool.New([]pool.Member[string]{
						{Value: "a", By: newCustom(a, time.Second, nil)}, {Value: "b", By: b},
					}))
					if name == "resume" {
						p.PauseUntil(1, time.Now().Add(time.Hour))
					}
					time.AfterFunc(after, func() { change(b, &back, p) })
					begin := time.Now()
					lease, err := p.Acquire(background, 1)
					require.NoError(t, err)
					require.Equal(t, "b", lease.Value())
					require.Less(t, time.Since(begin), 3*time.Second)
				})
			})
		}
	}
}

// An error of a limit, a deadline that ends meanwhile, a request that is too large for it, and its own longest wait are
// no answer to the next request.
func TestAnErrorIsForgotten(t *testing.T) {
	broken := errors.New("a timeout")
	for name, c := range map[string]struct {
		a    func() reserve.Reserver
		n    int
		ends time.Duration
	}{
		"error": {a: func() reserve.Reserver {
			return newCustom(even(1000), time.Millisecond, func(call int) error {
				if call <= 3 {
					return broken
				}
				return nil
			})
		}},
		"panic": {a: func() reserve.Reserver {
			return newCustom(even(1000), time.Millisecond, func(call int) error {
				if call == 1 {
					panic(broken)
				}
				return nil
			})
		}},
		"deadline":  {ends: 10 * time.Millisecond, a: func() reserve.Reserver { return newCustom(even(1000), 20*time.Millisecond, nil) }},
		"too large": {n: 101, a: func() reserve.Reserver { return keyed.New(windows).For("a") }},
		"large, of its own": {n: 101, a: func() reserve.Reserver {
			return newCustom(reserve.Must(window.New(100, 100*time.Millisecond)), time.Millisecond, nil)
		}},
		"its own longest wait": {n: 2000, a: func() reserve.Reserver {
			l := reserve.Must(pace.NewTokenBucket(1000, 100, reserve.WithMaxWait(time.Millisecond)))
			return newCustom(l, time.Millisecond, nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := reserve.Must(pool.New([]pool.Member[string]{{Value: "a", By: c.a()}, {Value: "b", By: even(1)}}))
				ctx, cancel := background, context.CancelFunc(func() {})
				if c.ends > 0 {
					ctx, cancel = context.WithTimeout(ctx, c.ends)
				}
				func() {
					defer func() { _ = recover() }()
					_, _ = p.Acquire(ctx, max(1, c.n))
				}()
				cancel()
				time.Sleep(time.Hour)
				begin := time.Now()
				for range 100 {
					require.NoError(t, acquire(background, p))
				}
				require.Less(t, time.Since(begin), 10*time.Second)
			})
		})
	}
}

func windows(string) (*reserve.Policy, error) { return window.Policy(100, 100*time.Millisecond) }

func acquire[T any](ctx context.Context, p *pool.Pool[T]) error {
	_, err := p.Acquire(ctx, 1)
	return err
}

// A caller that waits elsewhere asks a member that has returned an error again, after 1 s at first.
func TestAnErrorWhileOthersAreFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newCustom(even(1000), time.Millisecond, func(call int) error {
			if call < 5 {
				return errors.New("a timeout")
			}
			return nil
		})
		b := even(1)
		b.TryAcquire(3600)
		p := reserve.Must(pool.New([]pool.Member[string]{{Value: "a", By: a}, {Value: "b", By: b}}))
		begin := time.Now()
		lease, err := p.Acquire(background, 1)
		require.NoError(t, err)
		require.Equal(t, "a", lease.Value())
		require.Less(t, time.Since(begin), 20*time.Second)
		require.Zero(t, b.Snapshot().Wait-(3600*time.Second-time.Since(begin)), "its position at b is given back")
	})
}

// A dropped member is closed to all: first come, first served holds, nobody goes to it, and a caller that waits there
// goes elsewhere.
func TestDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var list []pool.Member[int]
		for i := range 3 {
			list = append(list, pool.Member[int]{Value: i, By: reserve.Must(pace.NewTokenBucket(5, 5))})
		}
		p := reserve.Must(pool.New(list))
		p.Drop(1)
		var mu sync.Mutex
		went := make([]time.Time, 60) // two members may grant at one moment
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				lease, err := p.Acquire(background, 1+i%5)
				require.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				require.NotEqual(t, 1, lease.Value())
				went[i] = time.Now()
			})
			time.Sleep(10 * time.Millisecond)
		}
		all.Wait()
		require.True(t, slices.IsSortedFunc(went, time.Time.Compare), went)
	})
	for _, members := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			a, b := even(1), even(1)
			a.TryAcquire(10)
			b.TryAcquire(100)
			p := reserve.Must(pool.New([]pool.Member[string]{{Value: "a", By: a}, {Value: "b", By: b}}[:members]))
			begin := time.Now()
			time.AfterFunc(9*time.Second, func() { p.Drop(0) })
			lease, err := p.Acquire(background, 1)
			if members == 1 {
				var wait *reserve.WaitError
				require.ErrorAs(t, err, &wait)
				require.Equal(t, reserve.Forever, wait.Wait)
				require.Equal(t, 9*time.Second, time.Since(begin))
				_, err = p.ReserveWithin(background, 1, 0)
				require.ErrorAs(t, err, &wait)
				p.Resume(0)
				time.Sleep(10 * time.Second)
				require.NoError(t, acquire(background, p))
				return
			}
			require.NoError(t, err)
			require.Equal(t, "b", lease.Value())
			require.Equal(t, 100*time.Second, time.Since(begin))
			require.Equal(t, 10*time.Second, 9*time.Second+time.Second)
		})
	}
}

// A pool that waits at a limiter beside other callers keeps its position there, whatever changes.
func TestKeepsItsPosition(t *testing.T) {
	for _, drop := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l, other := even(1), even(1)
			other.TryAcquire(1_000_000)
			p := reserve.Must(pool.New([]pool.Member[string]{{Value: "l", By: l}, {Value: "other", By: other}}))
			if drop {
				p.Drop(1)
			}
			l.TryAcquire(10)
			for i := range 100 {
				time.AfterFunc(time.Duration(i)*790*time.Millisecond, func() {
					r := reserve.Must(l.Reserve(background, 1))
					if i%5 == 0 {
						time.Sleep(700 * time.Millisecond)
						r.Cancel()
					}
				})
			}
			time.Sleep(500 * time.Millisecond)
			begin := time.Now()
			require.NoError(t, acquire(background, p))
			require.Less(t, time.Since(begin), 15*time.Second)
			time.Sleep(time.Hour)
		})
	}
}

type reads struct {
	clockwork.Clock
	n atomic.Int64
}

func (c *reads) Now() time.Time                  { c.n.Add(1); return c.Clock.Now() }
func (c *reads) Since(t time.Time) time.Duration { c.n.Add(1); return c.Clock.Since(t) }

// A pool in which nothing goes on does nothing: also where a member asks the same limiter twice, by different ways, or
// always returns an error.
func TestNothingGoesOn(t *testing.T) {
	for name, second := range map[string]func(c *reads) reserve.Reserver{
		"the same limiter twice": func(c *reads) reserve.Reserver {
			b := reserve.Must(pace.NewBursty(reserve.Per(1, 2*time.Hour), pace.WithBurst(0), reserve.WithClock(c)))
			return reserve.All(b, b)
		},
		"twice upfront": func(c *reads) reserve.Reserver {
			b := reserve.Must(pace.NewTokenBucket(reserve.Per(1, 2*time.Hour), 1, reserve.WithClock(c)))
			return reserve.All(b, b)
		},
		"errors": func(c *reads) reserve.Reserver {
			b := reserve.Must(pace.NewBursty(1, reserve.WithClock(c)))
			return newCustom(b, time.Millisecond, func(int) error { return errors.New("no") })
		},
		"a queue": func(c *reads) reserve.Reserver {
			b := reserve.Must(pace.NewBursty(reserve.Per(1, 2*time.Hour), pace.WithBurst(0), reserve.WithClock(c)))
			b.TryAcquire(1)
			return reserve.Must(fair.New(b, []fair.Class{{Name: "c"}}, fair.WithClock(c))).Class("c")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &reads{Clock: clockwork.NewRealClock()}
				a := reserve.Must(pace.NewBursty(1, reserve.WithClock(c)))
				a.TryAcquire(3600)
				p := reserve.Must(pool.New([]pool.Member[string]{{By: a}, {By: second(c)}}, pool.WithClock(c)))
				ctx, cancel := context.WithCancel(background)
				done := make(chan bool)
				go func() { _, _ = p.Acquire(ctx, 1); close(done) }()
				time.Sleep(100 * time.Second)
				n := c.n.Load()
				time.Sleep(1000 * time.Second)
				require.Less(t, (c.n.Load()-n)/1000, int64(5), "readings of the clock in a second")
				cancel()
				<-done
				require.Zero(t, p.Waiting())
			})
		})
	}
}

// A member whose own longest wait is shorter than the wait there is none, until it is near.
func TestOwnLongestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := reserve.Must(pace.NewBursty(1, pace.WithBurst(0), reserve.WithMaxWait(10*time.Second))), even(1)
		for range 10 {
			_ = a.TryAcquire(10)
			time.Sleep(time.Second)
		}
		a.PauseUntil(time.Now().Add(100 * time.Second))
		b.TryAcquire(200)
		p := reserve.Must(pool.New([]pool.Member[string]{{Value: "a", By: a}, {Value: "b", By: b}}))
		begin := time.Now()
		_, err := p.Acquire(background, 1)
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(begin), 200*time.Second)
	})
}

// A permit that is due at the moment of the deadline is granted, wherever the limit stands, behind a pool or a queue.
func TestDueAtTheDeadline(t *testing.T) {
	inFront := map[string]func(by reserve.Reserver) func(ctx context.Context) error{
		"pool": func(by reserve.Reserver) func(ctx context.Context) error {
			p := reserve.Must(pool.New([]pool.Member[string]{{By: by}}))
			return func(ctx context.Context) error { return acquire(ctx, p) }
		},
		"fair": func(by reserve.Reserver) func(ctx context.Context) error {
			q := reserve.Must(fair.New(by, []fair.Class{{Name: "c"}}))
			return func(ctx context.Context) error { _, err := q.Acquire(ctx, 1); return err }
		},
	}
	for name, kind := range kinds {
		for front, in := range inFront {
			t.Run(front+" of "+name, func(t *testing.T) {
				for range 15 {
					synctest.Test(t, func(t *testing.T) {
						l := kind()
						r := reserve.Must(l.ReserveWithin(background, 3, reserve.Forever))
						require.NoError(t, r.Wait(background))
						acquire := in(l.Reserver)
						ctx, cancel := context.WithTimeout(background, 4*time.Second)
						defer cancel()
						var all sync.WaitGroup
						for range 2 { // at 3 s and at 4 s
							all.Go(func() { require.NoError(t, acquire(ctx)) })
							time.Sleep(30 * time.Millisecond)
						}
						all.Wait()

						time.Sleep(2 * time.Second)
						l.pause(time.Now().Add(time.Minute))
						ctx, cancel = context.WithTimeout(background, time.Minute)
						defer cancel()
						all.Go(func() { require.NoError(t, acquire(ctx)) })
						all.Wait()
					})
				}
			})
		}
	}
}
