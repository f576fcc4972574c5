package shared

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A fakeServer grants everything, a second after it is asked, and remembers the lists.
type fakeServer struct {
	mu     sync.Mutex
	lists  [][]int // permits; a refund is negative
	flying int
	most   int
	fail   error
}

func (s *fakeServer) send(_ context.Context, list []*request) error {
	s.mu.Lock()
	s.flying++
	s.most = max(s.most, s.flying)
	var asked []int
	for _, r := range list {
		n := r.permits
		if r.refund != nil {
			n = -r.refund.permits
		}
		asked = append(asked, n)
	}
	s.lists = append(s.lists, asked)
	s.mu.Unlock()
	time.Sleep(time.Second) // the bubble's
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flying--
	for _, r := range list {
		r.err, r.granted = s.fail, s.fail == nil
	}
	return s.fail
}

// zero is a clock that stands, and leaves a request whose caller then leaves.
func zero() int64 { return 0 }

func leaves(r *request, patience time.Duration) *request {
	r.by = int64(patience)
	return r
}

// ask sends requests of 1, 2, 3 ... permits, one after the other.
func join(t *testing.T, q *queue[*request], s *fakeServer, n int, wg *sync.WaitGroup) {
	for i := range n {
		wg.Go(func() {
			r := leaves(buys(1+i, 0, 0), time.Hour)
			if err := q.do(context.Background(), r); err != nil || !r.granted && s.fail == nil || !errors.Is(r.err, s.fail) {
				t.Error(i, err, r.err)
			}
		})
		synctest.Wait()
	}
}

func TestQueueIsFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s fakeServer
		q := queue[*request]{send: s.send, now: zero}
		var wg sync.WaitGroup
		q.order.Store(true)
		begin := time.Now()
		join(t, &q, &s, 9, &wg)
		wg.Wait()
		require.Equal(t, [][]int{{1}, {2, 3, 4, 5, 6, 7, 8, 9}}, s.lists)
		require.Equal(t, 2*time.Second, time.Since(begin))
		require.Equal(t, 1, s.most)
		synctest.Wait()
		require.Zero(t, q.calls)
	})
}

func TestQueueSendsTwoCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s fakeServer
		q := queue[*request]{send: s.send, now: zero}
		var wg sync.WaitGroup
		join(t, &q, &s, 7, &wg)
		wg.Wait()
		require.Equal(t, [][]int{{1}, {2}, {3, 4, 5, 6, 7}}, s.lists)
		require.Equal(t, maxCalls, s.most)
		synctest.Wait()
		require.Zero(t, q.calls)
		require.Empty(t, q.waiting)
	})
}

func TestQueueBoundsItsLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s fakeServer
		q := queue[*request]{send: s.send, now: zero}
		var wg sync.WaitGroup
		q.order.Store(true)
		join(t, &q, &s, 2*maxList+11, &wg)
		wg.Wait()
		require.Len(t, s.lists, 4)
		require.Len(t, s.lists[1], maxList)
		require.Len(t, s.lists[3], 10)
	})
}

// A caller that leaves the queue is not charged; one that leaves a call under way gets its
// permits given back; and the others are served as before.
func TestQueueIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s fakeServer
		q := queue[*request]{send: s.send, now: zero}
		var wg sync.WaitGroup
		q.order.Store(true)
		gone := errors.New("gone")
		join(t, &q, &s, 1, &wg) // sent
		leave := func(permits int, after time.Duration) {
			ctx, cancel := context.WithTimeoutCause(context.Background(), after, gone)
			wg.Go(func() {
				defer cancel()
				if err := q.do(ctx, leaves(buys(permits, 0, 0), time.Hour)); !errors.Is(err, gone) {
					t.Error(permits, err)
				}
			})
			synctest.Wait()
		}
		leave(100, 500*time.Millisecond) // from the queue
		wg.Go(func() {
			if err := q.do(context.Background(), leaves(buys(7, 0, 0), time.Hour)); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		leave(200, 1500*time.Millisecond) // under way
		wg.Wait()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, [][]int{{1}, {7, 200}, {-200}}, s.lists)
		synctest.Wait()
		require.Zero(t, q.calls)
		require.Empty(t, q.waiting)
	})
}

// A caller that makes its call itself returns with its answer: no other caller's goroutine has taken its request along.
// With one processor, a lock that was waited for goes to the next in line, and so does the processor.
func TestQueueCallsForItself(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	q := queue[*request]{now: zero, most: time.Second, send: func(_ context.Context, list []*request) error {
		runtime.Gosched()
		for _, r := range list {
			r.granted = true
		}
		return nil
	}}
	whileTheyWait := func() {
		for range 10 {
			runtime.Gosched()
		}
		for begin := time.Now(); time.Since(begin) < 2*time.Millisecond; {
		}
	}
	var all sync.WaitGroup
	q.mu.Lock()
	for _, patience := range []time.Duration{time.Hour, time.Second / 2} {
		all.Go(func() {
			r := buys(1, 0, never)
			if err := q.do(context.Background(), leaves(r, patience)); err != nil || !r.granted {
				t.Error(patience, err, r.granted)
			}
		})
		whileTheyWait()
	}
	q.mu.Unlock()
	q.mu.Lock() // before the first has woken: now it waits in line
	whileTheyWait()
	q.mu.Unlock()
	all.Wait()
}

// Those who wait behind a call that fails have waited long enough.
func TestQueueFailsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakeServer{fail: errors.New("down")}
		q := queue[*request]{send: s.send, now: zero}
		var wg sync.WaitGroup
		begin := time.Now()
		join(t, &q, &s, 50, &wg)
		wg.Wait()
		require.Equal(t, time.Second, time.Since(begin))
		require.Len(t, s.lists, maxCalls)
		synctest.Wait()
		require.Zero(t, q.calls)
		synctest.Wait()
		s.fail = nil
		join(t, &q, &s, 1, &wg)
		wg.Wait()
	})
}

func TestCircuit(t *testing.T) {
	var c circuit
	down := errors.New("down")
	now := int64(0)
	step := func(err error, failures int) { c.report(now, err, failures) }
	step(down, 1)
	step(nil, 1)
	const begin = 4 * time.Second
	now = int64(begin)
	for range tolerated {
		probe, _, err := c.enter(now)
		require.NoError(t, err)
		require.False(t, probe)
		step(down, 1)
	}
	step(nil, 1) // an answer from before it opened
	for _, at := range []time.Duration{50, 200, 400, 800, 1200, 1600, 2000} {
		now = int64(begin+at*time.Millisecond) - 1
		_, _, err := c.enter(now)
		require.Equal(t, down, err)
		now++
		probe, _, err := c.enter(now)
		require.NoError(t, err)
		require.True(t, probe)
		_, _, err = c.enter(now) // one tries, the others go on without
		require.Equal(t, down, err)
		c.probedWith(now, down)
	}
	now += int64(time.Second)
	probe, _, err := c.enter(now)
	require.NoError(t, err)
	require.True(t, probe)
	c.probedWith(now, nil)
	probe, _, err = c.enter(now)
	require.NoError(t, err)
	require.False(t, probe)
}

// Callers that leave while another's call has their requests along do not look at the answers, which come
// later (under the race detector).
func TestLeaversLookAtNothing(t *testing.T) {
	for _, lost := range []bool{false, true} {
		outage(t, FailOpen(), func(t *testing.T, l *Limiter, s *generous) {
			_, err := l.Stored(t.Context())
			require.NoError(t, err)
			l.queue.order.Store(true) // one call at a time
			s.moody.Store(lost)       // the second
			s.trip = 20 * time.Millisecond
			var all sync.WaitGroup
			ask := func(ctx context.Context, cancel context.CancelFunc, ask func(ctx context.Context) error) {
				all.Go(func() {
					defer cancel()
					if err := ask(ctx); err != nil && ctx.Err() == nil {
						t.Error(err)
					}
				})
				time.Sleep(time.Millisecond)
			}
			reserved := func(ctx context.Context) error {
				_, err := l.Reserve(ctx, 1)
				return err
			}
			stored := func(ctx context.Context) error {
				_, err := l.Stored(ctx)
				return err
			}
			for range 2 { // the second has the others along
				ask(context.Background(), func() {}, reserved)
			}
			for _, asks := range []func(ctx context.Context) error{stored, reserved} {
				ctx, cancel := context.WithTimeout(context.Background(), 33*time.Millisecond)
				ask(ctx, cancel, asks)
			}
			all.Wait()
		})
	}
}

// What a reservation is settled at more is charged once, also behind more requests than a call can take.
func TestSettleBehindMany(t *testing.T) {
	outage(t, FailClosed(), func(t *testing.T, l *Limiter, s *generous) {
		r, err := l.Reserve(t.Context(), 1)
		require.NoError(t, err)
		s.trip = 20 * time.Millisecond
		var all sync.WaitGroup
		for range 5000 {
			all.Go(func() { _, _ = l.Reserve(context.Background(), 1) })
		}
		time.Sleep(time.Millisecond)
		r.Settle(1 + 1e6)
		all.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		require.Greater(t, s.charged.Load(), int64(1e6))
		require.Less(t, s.charged.Load(), int64(2e6))
		require.Zero(t, l.owed.permits.Load(), "it would be charged again")
	})
}
