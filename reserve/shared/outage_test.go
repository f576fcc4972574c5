package shared

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/watchdog"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

// A generous server grants everything at once, in the bubble's time, and counts what it charged.
type generous struct {
	down, deaf, late atomic.Bool // refuses; its answers are lost; is asked after the caller has given up
	moody            atomic.Bool // every second answer is lost
	trip             time.Duration
	asked, charged   atomic.Int64
	lost             atomic.Int64 // of those, by calls whose answers were lost
}

func (s *generous) Eval(ctx context.Context, _ *Script, _ string, arg []byte) ([]byte, error) {
	second := s.asked.Add(1)%2 == 0
	if !s.down.Load() {
		select {
		case <-time.After(s.trip):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if s.down.Load() {
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}
	if s.late.Load() {
		<-ctx.Done()
		time.Sleep(time.Millisecond)
	}
	deaf := s.deaf.Load() || s.late.Load() || s.moody.Load() && second
	now := time.Now().UnixMicro()
	answer := doubles(nil, float64(now))
	requests, _, notAfter := asked(arg)
	if now <= notAfter {
		answer = doubles(answer, 0, 0, 1000, 0, 0)
		s.charged.Add(int64(owedIn(arg)))
		for _, r := range requests {
			s.charged.Add(int64(r[0]))
			answer = doubles(answer, 0)
			if deaf {
				s.lost.Add(int64(r[0]))
			}
		}
	}
	if deaf {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return answer, nil
}

// outage runs a test with a limiter of 10/s, that stores 20.
func outage(t *testing.T, mode Option, test func(t *testing.T, l *Limiter, s *generous)) {
	synctest.Test(t, func(t *testing.T) {
		s := &generous{}
		l, err := New(s, "outage", reserve.Must(pace.Bursty(10, pace.WithCapacity(20))), mode, WithTimeout(50*time.Millisecond))
		require.NoError(t, err)
		defer time.Sleep(10 * l.timeout) // until no call is under way
		test(t, l, s)
	})
}

// grants returns how many of n requests are granted at once.
func grants(t *testing.T, l *Limiter, n int) (granted int) {
	for range n {
		ok, err := l.TryAcquire(t.Context(), 1)
		require.NoError(t, err)
		if ok {
			granted++
		}
	}
	return granted
}

// Answers are lost, all of them or every second one, for as long as it takes. Calls without an answer, and grants made
// meanwhile, charge a store and what has flowed in since at most, or what was granted.
func TestOwedIsAStoreAtMost(t *testing.T) {
	for _, mode := range []Option{FailOpen(), Local(0.5)} {
		for _, n := range []int{1, 7} {
			for _, moody := range []bool{true, false} {
				outage(t, mode, func(t *testing.T, l *Limiter, s *generous) {
					_, err := l.Stored(t.Context())
					require.NoError(t, err)
					s.deaf.Store(!moody)
					s.moody.Store(moody)
					granted := 0
					begin := time.Now()
					for range 400 {
						if _, err := l.ReserveWithin(t.Context(), n, 0); err == nil {
							granted += n
						}
						time.Sleep(5 * time.Millisecond)
					}
					s.deaf.Store(false)
					s.moody.Store(false)
					s.charged.Store(0)
					time.Sleep(time.Second)
					for range 3 {
						_, err = l.Stored(t.Context())
						require.NoError(t, err)
					}
					flowed := 10 * time.Since(begin).Seconds()
					t.Logf("%d permits a call, moody %v: %d charged unasked, %d afterwards; %.0f have flowed in",
						n, moody, s.lost.Load(), s.charged.Load(), flowed)
					require.LessOrEqual(t, float64(s.lost.Load()+s.charged.Load()), max(float64(granted), 20+flowed+float64(n)))
					require.Positive(t, s.lost.Load())
					require.Zero(t, l.Owed())
				})
			}
		}
	}
}

// Grants made without the server are charged once, when it is back.
func TestOwedIsChargedOnce(t *testing.T) {
	outage(t, FailOpen(), func(t *testing.T, l *Limiter, s *generous) {
		require.Equal(t, 15, grants(t, l, 15))
		s.down.Store(true)
		require.Equal(t, 5, grants(t, l, 5))
		s.down.Store(false)
		s.charged.Store(0)
		time.Sleep(100 * time.Millisecond) // longer than the circuit is open
		for range 3 {
			_, err := l.Stored(t.Context())
			require.NoError(t, err)
		}
		require.EqualValues(t, 5, s.charged.Load())
	})
}

// The keys that were used during an outage are forgotten like others.
func TestKeysOfAnOutageAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &generous{}
		s.down.Store(true)
		k, err := NewKeyed(s, reserve.Must(pace.Bursty(10)), FailOpen())
		require.NoError(t, err)
		use := func(name string) {
			for i := range 500 {
				_, err := k.TryAcquire(t.Context(), fmt.Sprint(name, i), 1)
				require.NoError(t, err)
			}
		}
		use("during ")
		require.Equal(t, 500, k.Len(), "all of them owe")
		s.down.Store(false)
		time.Sleep(2 * time.Second)
		use("after ")
		require.Less(t, k.Len(), 50)
	})
}

// A first call that reaches the server after its caller has given up is not charged either.
func TestFirstCallTooLate(t *testing.T) {
	outage(t, FailClosed(), func(t *testing.T, l *Limiter, s *generous) {
		s.late.Store(true)
		_, err := l.Reserve(t.Context(), 5)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualValues(t, 1, s.asked.Load())
		require.Zero(t, s.charged.Load())
		s.late.Store(false)
		_, err = l.Reserve(t.Context(), 5)
		require.NoError(t, err)
		require.EqualValues(t, 5, s.charged.Load())
	})
}

// Only the first key of many costs a second round trip.
func TestKeysShareTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &generous{}
		k, err := NewKeyed(s, reserve.Must(pace.Bursty(10)))
		require.NoError(t, err)
		for i := range 10 {
			_, err := k.TryAcquire(t.Context(), fmt.Sprint(i), 1)
			require.NoError(t, err)
		}
		require.EqualValues(t, 10, s.asked.Load())
	})
}

// The fallback does not grant in a second outage what it stored while the server answered.
func TestSecondOutage(t *testing.T) {
	outage(t, Local(0.5), func(t *testing.T, l *Limiter, s *generous) {
		for range 3 {
			s.down.Store(true)
			require.Equal(t, 1, grants(t, l, 40))
			s.down.Store(false)
			time.Sleep(time.Minute)
			_, err := l.Stored(t.Context())
			require.NoError(t, err)
		}
	})
}

// Nor what it stored since a failure that did not count.
func TestSecondOutageOfTheImpatient(t *testing.T) {
	outage(t, Local(0.5), func(t *testing.T, l *Limiter, s *generous) {
		_, err := l.Stored(t.Context())
		require.NoError(t, err)
		s.deaf.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		_, err = l.Reserve(ctx, 1)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		synctest.Wait()
		s.deaf.Store(false)
		_, err = l.Stored(t.Context())
		require.NoError(t, err)
		s.down.Store(true)
		require.Equal(t, 1, grants(t, l, 40))
	})
}

// A server far away is found again: three round trips take longer than the timeout, and nobody
// waits for longer than half as much again.
func TestComingBackFromFarAway(t *testing.T) {
	for _, mode := range []Option{FailClosed(), FailOpen()} {
		for _, trip := range []time.Duration{5, 12, 20, 30, 45} {
			trip *= time.Millisecond
			outage(t, mode, func(t *testing.T, l *Limiter, s *generous) {
				_, err := l.Stored(t.Context())
				require.NoError(t, err)
				s.trip = trip
				s.down.Store(true)
				for range tolerated {
					_, err = l.Stored(t.Context())
				}
				s.down.Store(false)
				time.Sleep(time.Minute)
				for calls := 1; err != nil; calls++ {
					require.Less(t, calls, 6, "%v away", trip)
					begin := time.Now()
					_, err = l.Stored(t.Context())
					require.LessOrEqual(t, time.Since(begin), 75*time.Millisecond, "%v away", trip)
				}
			})
		}
	}
}

// It does not forget its debt.
func TestSecondOutageAtOnce(t *testing.T) {
	outage(t, Local(0.05), func(t *testing.T, l *Limiter, s *generous) { // 0.5/s
		s.down.Store(true)
		require.Equal(t, 1, grants(t, l, 40))
		s.down.Store(false)
		time.Sleep(time.Second)
		_, err := l.Stored(t.Context())
		require.NoError(t, err)
		s.down.Store(true)
		require.Zero(t, grants(t, l, 40))
	})
}

// A server that refuses is down, however little time the callers have.
func TestRefusedConnectionsCount(t *testing.T) {
	outage(t, FailOpen(), func(t *testing.T, l *Limiter, s *generous) {
		_, err := l.Stored(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		s.down.Store(true)
		s.asked.Store(0)
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Millisecond)
			_, err := l.Reserve(ctx, 1)
			require.NoError(t, err)
			cancel()
		}
		require.EqualValues(t, tolerated, s.asked.Load())
	})
}

// A context that is done is told so, also where Redis need not be asked.
func TestTryAcquireOfAContextThatIsDone(t *testing.T) {
	outage(t, FailClosed(), func(t *testing.T, l *Limiter, s *generous) {
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		l.busy.Store(l.now() + int64(time.Second))
		ok, err := l.TryAcquire(ctx, 1)
		require.False(t, ok)
		require.ErrorIs(t, err, gone)
		require.Zero(t, s.asked.Load())
	})
}

// Two calls may report at the same time (under the race detector).
func TestCircuitReports(t *testing.T) {
	watchdog.Start(t)
	var c circuit
	var all sync.WaitGroup
	for _, err := range []error{nil, nil, errors.New("down"), errors.New("down")} {
		all.Go(func() {
			for range 1000 {
				c.report(0, err, 1)
			}
		})
	}
	all.Wait()
	c.probed = make(chan struct{})
	c.probedWith(0, nil)
	probe, _, err := c.enter(0)
	require.False(t, probe)
	require.NoError(t, err)
}

// Requests that Redis decides are not counted. All others are, whatever becomes of them.
func TestFallbacks(t *testing.T) {
	for _, mode := range []Option{FailClosed(), FailOpen(), Local(0.5)} {
		outage(t, mode, func(t *testing.T, l *Limiter, s *generous) {
			for range 3 {
				_, err := l.Reserve(t.Context(), 2)
				require.NoError(t, err)
			}
			require.Zero(t, l.Fallbacks())
			s.down.Store(true)
			for range 5 {
				_, _ = l.Reserve(t.Context(), 2)
			}
			require.Equal(t, uint64(5), l.Fallbacks())
		})
	}
}

// A caller that read the clock before a call was made, and goes on after its answer, is not refused
// by an answer that there are permits.
func TestAnAnswerRefusesNobodyInThePast(t *testing.T) {
	outage(t, FailClosed(), func(t *testing.T, l *Limiter, _ *generous) {
		time.Sleep(time.Second)
		before := l.now()
		time.Sleep(time.Millisecond)
		_, err := l.Stored(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, before, l.busy.Load())
	})
}

// However long ago the outage was, the first burst after it is answered by the server: those who come while one caller
// tries wait for what that finds out. While the server is still away they wait no longer than that.
func TestFirstBurstAfterAnOutage(t *testing.T) {
	for name, mode := range map[string]Option{"closed": FailClosed(), "open": FailOpen(), "local": Local(0.5)} {
		for _, rest := range []time.Duration{1500 * time.Millisecond, time.Hour} {
			outage(t, mode, func(t *testing.T, l *Limiter, s *generous) {
				s.trip = time.Millisecond
				_, err := l.Stored(t.Context())
				require.NoError(t, err)
				s.down.Store(true)
				for range tolerated {
					_, err = l.Stored(t.Context())
					require.Error(t, err)
				}
				s.down.Store(false)
				time.Sleep(rest)
				without := l.Fallbacks()
				require.Equal(t, 64, burst(t, l, 64, 0), "%s, %v later", name, rest)
				require.Equal(t, without, l.Fallbacks())

				// It goes away again: nobody is kept for longer than the one who tries may take.
				s.deaf.Store(true)
				for range tolerated {
					_, _ = l.Stored(t.Context())
				}
				time.Sleep(rest)
				begin := time.Now()
				burst(t, l, 64, 20*time.Millisecond)
				require.LessOrEqual(t, time.Since(begin), 20*time.Millisecond)
				time.Sleep(rest)
				begin = time.Now()
				burst(t, l, 64, 0)
				require.LessOrEqual(t, time.Since(begin), l.timeout/2*3)
				time.Sleep(10 * time.Millisecond)
				begin = time.Now()
				burst(t, l, 64, 0) // an outage with traffic: at once
				require.Zero(t, time.Since(begin))
			})
		}
	}
}

// burst returns how many of n requests at once are granted by a reservation without an error. Each has so much time,
// if that is not 0.
func burst(t *testing.T, l *Limiter, n int, each time.Duration) (granted int) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for range n {
		all.Go(func() {
			ctx := t.Context()
			if each > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, each)
				defer cancel()
			}
			_, err := l.Reserve(ctx, 1)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				granted++
			}
		})
	}
	all.Wait()
	return granted
}

// An error that says that the time was up says how long that was, and what sets it.
func TestTimedOut(t *testing.T) {
	outage(t, FailClosed(), func(t *testing.T, l *Limiter, s *generous) {
		_, err := l.Allow(t.Context()) // the first call has twice the time
		require.NoError(t, err)
		s.deaf.Store(true)
		_, err = l.Reserve(t.Context(), 1)
		var unavailable *UnavailableError
		require.ErrorAs(t, err, &unavailable)
		require.Equal(t, 50*time.Millisecond, unavailable.Timeout)
		require.ErrorContains(t, err, `shared: no answer for "pace:{outage}" within 50ms (WithTimeout)`)
		s.down.Store(true)
		_, err = l.Reserve(t.Context(), 1)
		require.ErrorAs(t, err, &unavailable)
		require.Zero(t, unavailable.Timeout)
	})
}

// However often a slow server's answers are lost, no caller waits for longer than two timeouts: for another caller's
// call or probe, and for its own call.
func TestNoCallerWaitsForLong(t *testing.T) {
	for name, mode := range map[string]Option{"closed": FailClosed(), "open": FailOpen(), "local": Local(0.5)} {
		outage(t, mode, func(t *testing.T, l *Limiter, s *generous) {
			s.trip = 40 * time.Millisecond
			var longest atomic.Int64
			var all sync.WaitGroup
			begin := time.Now()
			for i := range 12 {
				all.Go(func() {
					for time.Since(begin) < 10*time.Second {
						from := time.Now()
						_, _ = l.ReserveWithin(t.Context(), 1, 0)
						took := int64(time.Since(from))
						for was := longest.Load(); took > was && !longest.CompareAndSwap(was, took); {
							was = longest.Load()
						}
						time.Sleep(time.Duration(1+i) * time.Millisecond)
					}
				})
			}
			for n := range 50 {
				time.Sleep(time.Duration(61+n%7*31) * time.Millisecond)
				s.deaf.Store(n%2 == 0)
			}
			all.Wait()
			t.Log(name, time.Duration(longest.Load()))
			require.LessOrEqual(t, time.Duration(longest.Load()), 2*l.timeout, name)
		})
	}
}

// A hanging store answers nothing for a while.
type hanging struct {
	Store
	from, until time.Time
}

func (h *hanging) Update(
	ctx context.Context, key string, decide func(time.Time, []byte) ([]byte, time.Duration, error),
) error {
	if now := time.Now(); now.After(h.from) && now.Before(h.until) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(h.until.Sub(now)):
		}
	}
	time.Sleep(200 * time.Microsecond)
	return h.Store.Update(ctx, key, decide)
}

// A store that answers nothing for a whole timeout is gone: its callers don't wait for three timeouts, and what was granted
// without it does not keep them waiting when it is back. Callers with little time are granted permits meanwhile.
func TestBackAfterSilence(t *testing.T) {
	for name, mode := range map[string]Option{"closed": FailClosed(), "open": FailOpen(), "local": Local(0.25)} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			end := begin.Add(1600 * time.Millisecond)
			s := &hanging{Store: Memory(), from: begin.Add(400 * time.Millisecond), until: end}
			policy := reserve.Must(pace.Bursty(100, pace.WithCapacity(10)))
			var granted atomic.Int64 // in a second
			var all sync.WaitGroup
			caller := func(l *Limiter, patience, pause time.Duration) {
				for time.Since(end) < 2*time.Second {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					_, err := l.Acquire(ctx, 1)
					cancel()
					if after := time.Since(end); err == nil && after > 600*time.Millisecond && after <= 1600*time.Millisecond {
						granted.Add(1)
					}
					time.Sleep(pause)
				}
			}
			for range 4 {
				l, err := NewIn(s, "silence", policy, mode, WithTimeout(500*time.Millisecond))
				require.NoError(t, err)
				for range 2 {
					all.Go(func() { caller(l, time.Minute, time.Millisecond) })
				}
				all.Go(func() { caller(l, 20*time.Millisecond, time.Millisecond) })
				all.Go(func() {
					for time.Since(end) < 2*time.Second {
						_, _ = l.Stored(t.Context())
						time.Sleep(10 * time.Millisecond)
					}
				})
			}
			all.Wait()
			require.InDelta(t, 100, granted.Load(), 3, name)
		})
	}
}

// A store that has never answered fails callers with little time, and then others: there is one fallback, not a new one.
func TestOneFallbackBeforeTheFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := reserve.Must(window.Policy(10, time.Hour))
		l, err := NewIn(hasty{}, "x", policy, Local(1))
		require.NoError(t, err)
		granted := 0
		for _, within := range []time.Duration{time.Second / 10, time.Second / 10, 10 * time.Second, 10 * time.Second} {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			if ok, _ := l.TryAcquire(ctx, 4); ok {
				granted += 4
			}
			cancel()
		}
		require.Equal(t, 8, granted)
	})
}

// hasty is a store whose own timeout is over before its callers' time.
type hasty struct{}

func (hasty) Update(context.Context, string, func(time.Time, []byte) ([]byte, time.Duration, error)) error {
	time.Sleep(time.Millisecond)
	return os.ErrDeadlineExceeded
}
