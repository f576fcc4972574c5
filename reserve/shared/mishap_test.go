package shared

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
)

// A jumpy client panics, or ends the goroutine, a while after it is asked.
type jumpy struct {
	generous
	mu    sync.Mutex
	jumps func() // nil: it does not
}

func (s *jumpy) Eval(ctx context.Context, script *Script, key string, arg []byte) ([]byte, error) {
	time.Sleep(10 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jumps != nil {
		s.jumps()
	}
	return s.generous.Eval(ctx, script, key, arg)
}

// A client that panics leaves no caller waiting, neither the callers behind the call nor later ones. The next one that
// tries finds out that it is well again.
func TestPanicOfTheClient(t *testing.T) {
	for _, jumps := range []func(){func() { panic("a hook's") }, runtime.Goexit} {
		synctest.Test(t, func(t *testing.T) {
			s := &jumpy{jumps: jumps}
			l, err := New(s, "jumpy", reserve.Must(pace.Bursty(1e6)))
			require.NoError(t, err)
			ask := func(n int) (panicked, failed, granted int) {
				var all sync.WaitGroup
				var mu sync.Mutex
				for range n {
					all.Go(func() {
						returned := false
						defer func() {
							mu.Lock()
							defer mu.Unlock()
							if recover() != nil || !returned { // as net/http does
								panicked++
							}
						}()
						_, err := l.Acquire(context.Background(), 1)
						returned = true
						mu.Lock()
						defer mu.Unlock()
						var unavailable *UnavailableError
						switch {
						case err == nil:
							granted++
						case errors.As(err, &unavailable):
							failed++
						default:
							t.Error(err)
						}
					})
				}
				all.Wait()
				return panicked, failed, granted
			}
			for range 5 {
				panicked, failed, granted := ask(20)
				require.LessOrEqual(t, panicked, maxCalls)
				require.Equal(t, 20, panicked+failed)
				require.Zero(t, granted)
				time.Sleep(time.Second) // now one tries again, and panics
			}
			require.Zero(t, l.queue.calls)
			s.mu.Lock()
			s.jumps = nil
			s.mu.Unlock()
			time.Sleep(time.Second)
			_, err = l.Acquire(context.Background(), 1)
			require.NoError(t, err)
			_, _, granted := ask(20)
			require.Equal(t, 20, granted)
		})
	}
}

// A client that panics, or ends the goroutine, at the second call of a probe has not answered three times.
func TestPanicInAProbe(t *testing.T) {
	for _, jumps := range []func(){func() { panic("a hook's") }, runtime.Goexit} {
		synctest.Test(t, func(t *testing.T) {
			s := &jumpy{}
			l, err := New(s, "jumpy", reserve.Must(pace.Bursty(10)))
			require.NoError(t, err)
			_, err = l.Stored(t.Context())
			require.NoError(t, err)
			s.down.Store(true)
			for range certain {
				_, err = l.Stored(t.Context())
				require.Error(t, err)
			}
			s.down.Store(false)
			s.asked.Store(0)
			s.jumps = func() {
				if s.asked.Load() == 1 {
					s.asked.Add(1)
					jumps()
				}
			}
			time.Sleep(time.Second)
			_, err = l.Stored(t.Context())
			require.Error(t, err)
			require.True(t, l.Stats().Open)
		})
	}
}

// Callers with less time than the timeout get the fallback before their time is up, and three of
// them are enough to know that the server is away.
func TestFallbackOfTheHurried(t *testing.T) {
	for name, break_ := range map[string]func(*generous){
		"refused":   func(s *generous) { s.down.Store(true) },
		"no answer": func(s *generous) { s.late.Store(true) },
	} {
		for _, left := range []time.Duration{20 * time.Millisecond, 50 * time.Millisecond, 60 * time.Millisecond} {
			for _, mode := range []Option{FailOpen(), Local(1)} {
				outage(t, mode, func(t *testing.T, l *Limiter, s *generous) {
					_, err := l.Stored(t.Context())
					require.NoError(t, err)
					time.Sleep(time.Second) // since the last answer
					break_(s)
					s.asked.Store(0)
					for i := range 16 {
						ctx, cancel := context.WithTimeout(t.Context(), left)
						r, err := l.ReserveWithin(ctx, 1, reserve.Forever)
						var wait *reserve.WaitError
						if l.mode == open || i == 0 || !errors.As(err, &wait) { // then the process's share is used up
							require.NoError(t, err, "%v, %v", name, left)
							require.LessOrEqual(t, r.Delay(), left)
						}
						require.NoError(t, ctx.Err(), "the time is not up")
						cancel()
					}
					require.GreaterOrEqual(t, int(s.asked.Load()), 1, name)
					require.LessOrEqual(t, int(s.asked.Load()), tolerated, name)
				})
			}
		}
	}
}

// The caller of them that probes gets it in time too, and its probe goes on.
func TestTheHurriedTry(t *testing.T) {
	for _, left := range []time.Duration{5 * time.Millisecond, 20 * time.Millisecond, 60 * time.Millisecond} {
		outage(t, FailOpen(), func(t *testing.T, l *Limiter, s *generous) {
			_, err := l.Stored(t.Context())
			require.NoError(t, err)
			s.deaf.Store(true)
			for range tolerated {
				_, err = l.Stored(t.Context())
				require.Error(t, err)
			}
			for range 40 {
				time.Sleep(100 * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), left)
				_, err := l.ReserveWithin(ctx, 1, reserve.Forever)
				require.NoError(t, err)
				require.NoError(t, ctx.Err(), "the time is not up")
				cancel()
			}
			s.deaf.Store(false)
			time.Sleep(time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), left)
			defer cancel()
			_, err = l.ReserveWithin(ctx, 1, reserve.Forever)
			require.NoError(t, err)
			probe, _, err := l.node().circuit.enter(l.now())
			require.NoError(t, err, "its probe has closed the circuit")
			require.False(t, probe)
		})
	}
}

// Those who wait behind another's call get it too.
func TestFallbackInTheQueue(t *testing.T) {
	outage(t, FailOpen(), func(t *testing.T, l *Limiter, s *generous) {
		_, err := l.Stored(t.Context())
		require.NoError(t, err)
		l.queue.order.Store(true) // one call at a time
		s.late.Store(true)
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				ctx := t.Context()
				if i > 0 {
					time.Sleep(time.Millisecond)
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, 20*time.Millisecond)
					defer cancel()
				}
				if _, err := l.Reserve(ctx, 1); err != nil || ctx.Err() != nil {
					t.Error(i, err, ctx.Err())
				}
			})
		}
		all.Wait()
	})
}

// A caller that leaves ends no call: the next callers ask again when it has ended, a slow server's answers count, and
// what was granted to those who have left comes back.
func TestTheImpatientEndNoCall(t *testing.T) {
	outage(t, FailOpen(), func(t *testing.T, l *Limiter, s *generous) {
		_, err := l.Stored(t.Context())
		require.NoError(t, err)
		s.trip = 40 * time.Millisecond
		s.asked.Store(0)
		for range 40 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			_, err := l.Reserve(ctx, 1)
			require.NoError(t, err)
			cancel()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		require.LessOrEqual(t, int(s.asked.Load()), 2*maxCalls*(40*5/40))
		probe, _, err := l.node().circuit.enter(l.now())
		require.NoError(t, err)
		require.False(t, probe)
	})
}

// Whatever a caller asks, it leaves at its deadline.
func TestEveryCallerLeavesAtItsDeadline(t *testing.T) {
	for name, ask := range map[string]func(context.Context, *Limiter) error{
		"Reserve": func(ctx context.Context, l *Limiter) error { return second(l.Reserve(ctx, 1)) },
		"Decide":  func(ctx context.Context, l *Limiter) error { return second(l.Decide(ctx, 1)) },
		"Stored":  func(ctx context.Context, l *Limiter) error { return second(l.Stored(ctx)) },
		"SetRate": func(ctx context.Context, l *Limiter) error { return l.SetRate(ctx, 5) },
		"Reset":   func(ctx context.Context, l *Limiter) error { return l.Reset(ctx) },
	} {
		outage(t, FailClosed(), func(t *testing.T, l *Limiter, s *generous) {
			s.trip = 20 * time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			defer cancel()
			begin := time.Now()
			require.ErrorIs(t, ask(ctx, l), context.DeadlineExceeded, name)
			require.Equal(t, 5*time.Millisecond, time.Since(begin), name)
		})
	}
}

// slowBack is a store whose answers take a while.
type slowBack struct{ Store }

func (s slowBack) Update(ctx context.Context, key string, f func(time.Time, []byte) ([]byte, time.Duration, error)) error {
	err := s.Store.Update(ctx, key, f)
	time.Sleep(60 * time.Millisecond)
	return err
}

// A caller that can't use what its call was granted makes no other call to give it back.
func TestNoCallerWaitsToGiveBack(t *testing.T) {
	for _, cancelled := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			policy := reserve.Must(pace.Bursty(100, pace.WithCapacity(20)))
			l, err := NewIn(slowBack{Memory()}, "x", policy, WithTimeout(70*time.Millisecond))
			require.NoError(t, err)
			_, _ = l.Stored(t.Context()) // learns the store's clock
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			leaves := 60 * time.Millisecond
			if cancelled {
				leaves = 10 * time.Millisecond
				time.AfterFunc(leaves, cancel)
			} else { // the answer comes too late
				_, err = l.Reserve(t.Context(), 33)
				require.NoError(t, err)
				ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
			}
			begin := time.Now()
			_, err = l.Acquire(ctx, 1)
			require.Error(t, err)
			require.Equal(t, leaves, time.Since(begin), err)
			time.Sleep(time.Second)
			stored, err := l.Stored(t.Context())
			require.NoError(t, err)
			require.InDelta(t, 20, stored, 1e-6)
		})
	}
}

func second[T any](_ T, err error) error { return err }

// A store that is slower than its callers' time has not failed: while its last answer shows that there is nothing for
// them, FailOpen grants them nothing.
func TestFailOpenAtASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &lag{Store: Memory()}
		l, err := NewIn(store, "slow", reserve.Must(pace.Bursty(10, pace.WithCapacity(2))), FailOpen())
		require.NoError(t, err)
		_, err = l.Reserve(t.Context(), 50) // the next permit comes in 5 s
		require.NoError(t, err)
		store.by = 40 * time.Millisecond
		granted := 0
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			_, err := l.Acquire(ctx, 1)
			cancel()
			var wait *reserve.WaitError
			if err == nil {
				granted++
			} else {
				require.ErrorAs(t, err, &wait)
			}
		}
		require.Zero(t, granted)
		time.Sleep(time.Second)
	})
}

// A lag is a store that answers late.
type lag struct {
	Store
	by time.Duration
}

func (s *lag) Update(ctx context.Context, key string, f func(time.Time, []byte) ([]byte, time.Duration, error)) error {
	time.Sleep(s.by)
	return s.Store.Update(ctx, key, f)
}

// The distance of probes is from beginning to beginning: one that waits for its timeout is followed by the next.
func TestProbesThatTakeLong(t *testing.T) {
	var c circuit
	down := errors.New("down")
	now := int64(time.Hour)
	for range tolerated {
		c.report(now, down, 1)
	}
	for range 8 {
		now += lastPause * 3 / 2 // the distance, at a multiple of it
		probe, _, err := c.enter(now)
		require.NoError(t, err)
		require.True(t, probe)
		c.probedWith(now+int64(500*time.Millisecond), down)
	}
}

// Processes that lost the server at different times find it again together, within a millisecond.
func TestComingBackTogether(t *testing.T) {
	down := errors.New("down")
	var found []int64 // nanoseconds since 1970
	for i := range int64(20) {
		c := circuit{epoch: 1_790_000_000_000_000_000 + i*123_456_789}
		now := 1 + i*77_000_000%3_000_000_000
		c.report(now, down, 1)
		now += firstPause
		for range tolerated - 1 {
			c.report(now, down, 1)
		}
		back := 1_790_000_020_000_000_000 - c.epoch
		for ; ; now += 500_000 {
			probe, _, _ := c.enter(now)
			if probe && now >= back {
				break
			}
			if probe {
				c.probedWith(now, down)
			}
		}
		found = append(found, c.epoch+now)
	}
	for _, at := range found {
		require.InDelta(t, found[0], at, 1e6)
		require.Less(t, at, int64(1_790_000_020_600_000_000))
	}
}

// While Redis is away no more keys are remembered than one allows.
func TestMaxKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &generous{}
		s.down.Store(true)
		policy := reserve.Must(pace.Bursty(10))
		k, err := NewKeyed(s, policy, FailOpen(), WithMaxKeys(100))
		require.NoError(t, err)
		granted := 0
		for i := range 1000 {
			ok, err := k.TryAcquire(t.Context(), fmt.Sprint(i), 1)
			if err != nil {
				require.ErrorIs(t, err, keyed.ErrTooManyKeys)
				_, err = k.Acquire(t.Context(), fmt.Sprint(i), 1)
				require.ErrorIs(t, err, keyed.ErrTooManyKeys)
				_, err = k.For(fmt.Sprint(i)).ReserveWithin(t.Context(), 1, 0)
				require.ErrorIs(t, err, keyed.ErrTooManyKeys)
				continue
			}
			require.True(t, ok)
			granted++
		}
		require.Equal(t, 100, granted)
		require.Equal(t, 100, k.Len())
		_, err = k.TryAcquire(t.Context(), "7", 1)
		require.NoError(t, err, "one that is remembered")
		time.Sleep(2 * time.Second) // and what was granted has flowed in again
		s.down.Store(false)
		for i := range 1000 {
			_, err := k.TryAcquire(t.Context(), fmt.Sprint("later ", i), 1)
			require.NoError(t, err)
		}

		_, err = New(s, "x", policy, WithAhead(-1))
		require.ErrorContains(t, err, "WithAhead")
		_, err = NewKeyed(s, policy, WithMaxKeys(0))
		require.EqualError(t, err, "shared: WithMaxKeys is 0; want at least 1")
		_, err = New(s, "one", policy, WithMaxKeys(5))
		require.EqualError(t, err, "shared: WithMaxKeys does not apply to a limiter of one key")
	})
}

// A key is remembered during a call that its caller has left: if it fails, what it was to charge is owed still.
func TestKeyOfACallThatWasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{&away{Store: Memory()}}
		k, err := NewKeyedIn(s, reserve.Must(pace.Bursty(100)), FailOpen())
		require.NoError(t, err)
		s.down.Store(true)
		_, err = k.TryAcquire(t.Context(), "x", 5)
		require.NoError(t, err)
		s.down.Store(false)
		_, err = k.TryAcquire(t.Context(), "y", 1) // the store is known to answer
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err = k.TryAcquire(ctx, "x", 1)
		require.NoError(t, err)
		s.down.Store(true)
		time.Sleep(30 * time.Millisecond)
		_, err = k.TryAcquire(t.Context(), "z", 1) // looks for keys to forget
		require.NoError(t, err)
		require.NotNil(t, k.keys[known{text: "x"}])
		require.EqualValues(t, 6, k.keys[known{text: "x"}].Owed())
	})
}

// A bucket is a server that limits: 2000/s, of which it stores 20.
type bucket struct {
	mu    sync.Mutex
	level float64
	at    time.Time
}

// A line to a bucket can be cut.
type line struct {
	*bucket
	cut bool
}

func (b *line) Eval(_ context.Context, _ *Script, _ string, arg []byte) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cut {
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}
	now := time.Now()
	b.level = min(20, b.level+2000*now.Sub(b.at).Seconds())
	b.at = now
	answer := doubles(nil, float64(now.UnixMicro()))
	requests, _, notAfter := asked(arg)
	if notAfter == 1 { // it only asks for the time
		return answer, nil
	}
	if b.level >= -20 {
		b.level -= float64(owedIn(arg)) // all of it was used a moment ago
	}
	answer = doubles(answer, 0, 0, max(0, b.level), max(0, -b.level)/2000*1e9, 0)
	for _, r := range requests {
		wait := int64(max(0, -b.level) / 2000 * 1e9)
		if float64(wait) > r[1] {
			answer = doubles(answer, float64(-1-wait))
			continue
		}
		b.level -= r[0]
		answer = doubles(answer, float64(wait))
	}
	return answer, nil
}

// Four processes lose Redis one after another, each goes on with its share, and they come back: the
// excess, from the moment Redis is back, is less than one store.
func TestComingBackGrantsLittleTooMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bucket{level: 20, at: time.Now()}
		var lines []*line
		var all sync.WaitGroup
		var mu sync.Mutex
		var granted []time.Time
		begin := time.Now()
		const length = 12 * time.Second
		for range 4 {
			time.Sleep(37 * time.Millisecond) // so that their clocks began at different times
			client := &line{bucket: b}
			lines = append(lines, client)
			l, err := New(client, "coming back", reserve.Must(pace.Bursty(2000, pace.WithCapacity(20))), Local(0.25))
			require.NoError(t, err)
			all.Go(func() {
				for time.Since(begin) < length {
					ok, err := l.TryAcquire(context.Background(), 1)
					if err != nil {
						t.Error(err)
					}
					if ok {
						mu.Lock()
						granted = append(granted, time.Now())
						mu.Unlock()
					}
					if !ok || l.owed.permits.Load() == 0 {
						time.Sleep(200 * time.Microsecond)
					}
				}
			})
		}
		cut := func(l *line, yes bool) {
			b.mu.Lock()
			defer b.mu.Unlock()
			l.cut = yes
		}
		for i, l := range lines {
			time.Sleep(time.Duration(i) * 333 * time.Millisecond)
			cut(l, true)
		}
		time.Sleep(4 * time.Second)
		back := time.Now()
		for _, l := range lines {
			cut(l, false)
		}
		all.Wait()
		worst := 0.0
		count := 0
		for _, at := range granted {
			if at.After(back) {
				count++
				worst = max(worst, float64(count)-2000*at.Sub(back).Seconds())
			}
		}
		t.Logf("at most %.0f more than the rate", worst)
		require.Less(t, worst, 2*20.0, "the store, and one more")
		require.Greater(t, float64(count), 0.9*2000*(length-back.Sub(begin)).Seconds())
	})
}

// However many processes granted without Redis, together they charge two stores at most.
func TestManyProcessesOweLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bucket{level: 20, at: time.Now()}
		cut := &line{bucket: b}
		var all []*Limiter
		for range 50 {
			l, err := New(cut, "many", reserve.Must(pace.Bursty(2000, pace.WithCapacity(20))), FailOpen())
			require.NoError(t, err)
			_, err = l.Stored(t.Context())
			require.NoError(t, err)
			all = append(all, l)
		}
		time.Sleep(time.Second)
		cut.cut = true
		for _, l := range all {
			require.Equal(t, 100, grants(t, l, 100))
		}
		cut.cut = false
		for _, l := range all {
			l.owed.last.Store(l.now() + int64(time.Second)) // as if it had granted until a moment ago
		}
		time.Sleep(time.Second)
		for _, l := range all {
			for range 2 {
				_, err := l.Stored(t.Context())
				require.NoError(t, err)
			}
			require.Zero(t, l.Owed())
		}
		require.GreaterOrEqual(t, b.level, -40.0)
		require.Less(t, b.level, -10.0)
	})
}
