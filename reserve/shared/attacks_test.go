package shared_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
)

type change = func(now time.Time, old []byte) ([]byte, time.Duration, error)

// distant is a store: so long there, and so long back. The first calls make a connection, which is lost if their context
// ends.
type distant struct {
	shared.Store
	there, back, connect time.Duration
	connected            atomic.Bool
	calls                atomic.Int64
}

func (d *distant) Dials() {}

func (d *distant) Update(ctx context.Context, key string, f change) error {
	d.calls.Add(1)
	wait := func(d time.Duration) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if !d.connected.Load() {
		if err := wait(d.connect); err != nil {
			return err
		}
		d.connected.Store(true)
	}
	if err := wait(d.there); err != nil {
		return err
	}
	err := d.Store.Update(context.WithoutCancel(ctx), key, f)
	return errors.Join(err, wait(d.back))
}

// The first call is one trip, so it succeeds wherever the timeout allows later calls, and a connection has time, too.
func TestFirstCall(t *testing.T) {
	for _, d := range []*distant{
		{there: 10, back: 450}, {there: 450, back: 10}, {there: 240, back: 240}, {there: 65, back: 65, connect: 800},
	} {
		synctest.Test(t, func(t *testing.T) {
			d.Store, d.there, d.back, d.connect = shared.Memory(), d.there*1e6, d.back*1e6, d.connect*1e6
			for range 2 { // processes
				l := reserve.Must(shared.NewIn(d, "api", reserve.Must(pace.TokenBucket(10, 10))))
				for range 3 {
					ok, err := l.TryAcquire(t.Context(), 1)
					require.NoError(t, err)
					require.True(t, ok)
				}
			}
			require.EqualValues(t, 6, d.calls.Load())
		})
	}
}

// A connection that takes longer than two timeouts is made by the calls that go on: not each call begins a new one.
func TestConnectionIsMadeInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &distant{Store: shared.Memory(), there: 150e6, back: 150e6, connect: 1200e6}
		l := reserve.Must(shared.NewIn(d, "api", reserve.Must(pace.TokenBucket(10, 10))))
		begin := time.Now()
		for ok := false; !ok; time.Sleep(20 * time.Millisecond) {
			ok, _ = l.TryAcquire(t.Context(), 1)
			require.Less(t, time.Since(begin), 4*time.Second)
		}
		ok, err := l.TryAcquire(t.Context(), 1)
		require.NoError(t, err)
		require.True(t, ok)
		time.Sleep(10 * time.Second) // what goes on ends
	})
}

// A process whose callers have too little time for an answer takes nothing from the others.
func TestCallersWithoutTimeTakeNothing(t *testing.T) {
	for name, mode := range map[string]shared.Option{
		"closed": shared.FailClosed(), "open": shared.FailOpen(), "local": shared.Local(0.01),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory, policy := shared.Memory(), reserve.Must(pace.TokenBucket(10, 10))
				far := &distant{Store: memory, there: 50 * time.Millisecond, back: 50 * time.Millisecond}
				hurried := reserve.Must(shared.NewIn(far, "api", policy, mode))
				near := reserve.Must(shared.NewIn(memory, "api", policy))
				ctx, cancel := context.WithCancel(t.Context())
				var all sync.WaitGroup
				var used atomic.Int64
				all.Go(func() {
					for ctx.Err() == nil {
						time.Sleep(2 * time.Millisecond)
						for range 3 {
							all.Go(func() {
								ctx, stop := context.WithTimeout(ctx, 10*time.Millisecond)
								defer stop()
								if hurried.Wait(ctx) == nil {
									used.Add(1)
								}
							})
						}
					}
				})
				time.Sleep(2 * time.Second)
				got := 0
				for range 200 { // 10 s, in which 100 permits come
					ok, err := near.TryAcquire(t.Context(), 1)
					require.NoError(t, err)
					if ok {
						got++
					}
					time.Sleep(50 * time.Millisecond)
				}
				cancel()
				all.Wait()
				t.Logf("near %d, hurried %d", got, used.Load())
				require.GreaterOrEqual(t, got+int(used.Load()), 90)
				require.LessOrEqual(t, got+int(used.Load()), 160, "in 12 s")
				if name != "open" {
					require.GreaterOrEqual(t, got, 90)
				}
				time.Sleep(10 * time.Second)
			})
		})
	}
}

// stuck is a store whose calls don't return, whatever their contexts say, until it thaws.
type stuck struct {
	shared.Store
	frozen atomic.Bool
	thaw   chan struct{}
	hang   atomic.Int64
}

func (s *stuck) Update(ctx context.Context, key string, f change) error {
	if s.frozen.Load() {
		s.hang.Add(1)
		<-s.thaw
		s.hang.Add(-1)
	}
	return s.Store.Update(context.WithoutCancel(ctx), key, f)
}

// A store that hangs (a frozen disk) keeps no caller longer than the timeout, and few of its calls hang, for many keys.
func TestStoreThatHangs(t *testing.T) {
	for name, mode := range map[string]shared.Option{"closed": shared.FailClosed(), "open": shared.FailOpen(), "local": shared.Local(1)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stuck{Store: shared.Memory(), thaw: make(chan struct{})}
				k := reserve.Must(shared.NewKeyedIn(s, reserve.Must(pace.TokenBucket(100, 100)), mode))
				ask := func(i int) error {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					defer cancel()
					begin := time.Now()
					_, err := k.TryAcquire(ctx, fmt.Sprint("key ", i%100), 1)
					require.LessOrEqual(t, time.Since(begin), time.Second)
					return err
				}
				for i := range 100 {
					require.NoError(t, ask(i))
				}
				s.frozen.Store(true)
				for i := range 2000 {
					err := ask(i)
					if name != "closed" {
						require.NoError(t, err)
					}
					time.Sleep(10 * time.Millisecond)
					require.LessOrEqual(t, s.hang.Load(), int64(8+3))
				}
				s.frozen.Store(false)
				close(s.thaw)
				time.Sleep(2 * time.Second)
				for i := range 100 {
					require.NoError(t, ask(i))
				}
				require.False(t, k.Stats().Open)
			})
		})
	}
}

// goesOn is a store that obeys the context, on a driver that does not: it calls f when the call is long over.
type goesOn struct {
	shared.Store
	slow atomic.Bool
	mu   sync.Mutex
	late []func() error
}

func (s *goesOn) Update(ctx context.Context, key string, f change) error {
	if s.slow.Load() {
		<-ctx.Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.late = append(s.late, func() error { return s.Store.Update(context.Background(), key, f) })
		return ctx.Err()
	}
	return s.Store.Update(ctx, key, f)
}

func TestStoreThatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &goesOn{Store: shared.Memory()}
		k := reserve.Must(shared.NewKeyedIn(s, reserve.Must(pace.TokenBucket(1e-6, 1)), shared.WithTimeout(50*time.Millisecond)))
		ok, err := k.TryAcquire(t.Context(), "a", 1)
		require.NoError(t, err)
		require.True(t, ok)
		s.slow.Store(true)
		_, err = k.TryAcquire(t.Context(), "b", 1)
		require.Error(t, err)
		s.slow.Store(false)
		time.Sleep(time.Second)
		s.mu.Lock()
		all := s.late
		s.mu.Unlock()
		for _, late := range all {
			require.Error(t, late(), "its call is over, and its order may be another's")
		}
		ok, err = k.TryAcquire(t.Context(), "b", 1)
		require.NoError(t, err)
		require.True(t, ok)
	})
}

// A store that fails calls for a minute, under FailOpen: while it mostly answers, its answers are the limit. Afterwards
// nobody is refused for longer than two capacities take.
func TestDebtAfterFailedCalls(t *testing.T) {
	for every, most := range map[int64]int{4: 6600, 2: 60_000, 1: 60_000} {
		t.Run(fmt.Sprint("every ", every), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &everyKth{Store: shared.Memory(), every: every}
				policy := reserve.Must(pace.TokenBucket(100, 100))
				open := reserve.Must(shared.NewIn(s, "api", policy, shared.FailOpen()))
				closed := reserve.Must(shared.NewIn(s.Store, "api", policy))
				time.Sleep(time.Second)
				var all sync.WaitGroup
				var granted atomic.Int64
				for range 60_000 {
					all.Go(func() {
						if _, err := open.ReserveWithin(t.Context(), 1, 0); err == nil {
							granted.Add(1)
						}
					})
					time.Sleep(time.Millisecond)
				}
				all.Wait()
				s.every = 0
				time.Sleep(time.Second)
				_, err := open.Allow(t.Context())
				require.NoError(t, err)
				shot, err := closed.Snapshot(t.Context())
				require.NoError(t, err)
				t.Logf("granted %d of 6,100, then refused for %v", granted.Load(), shot.Wait)
				require.LessOrEqual(t, int(granted.Load()), most)
				require.LessOrEqual(t, shot.Wait, 2*time.Second)
			})
		})
	}
}

// everyKth refuses every k-th call.
type everyKth struct {
	shared.Store
	every, calls int64
	mu           sync.Mutex
}

func (f *everyKth) Update(ctx context.Context, key string, do change) error {
	time.Sleep(time.Millisecond)
	f.mu.Lock()
	f.calls++
	fails := f.every > 0 && f.calls%f.every == 0
	f.mu.Unlock()
	if fails {
		return errors.Join(errors.New("connection refused"), shared.ErrNotWritten)
	}
	return f.Store.Update(ctx, key, do)
}
