package pacek8s

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
)

const second = time.Second

func newQueue(t *testing.T, overall reserve.Reserver, perItem func(string) reserve.Reserver) *QueueLimiter[string] {
	q, err := NewQueueLimiter(overall, perItem)
	require.NoError(t, err)
	return q
}

// onePerSecond is a limiter, and its clock.
func onePerSecond(opts ...reserve.Option) (*reserve.Limiter, *clockwork.FakeClock) {
	clock := clockwork.NewFakeClock()
	return reserve.Must(pace.NewBursty(1, append(opts, reserve.WithClock(clock))...)), clock
}

func TestWhenReserves(t *testing.T) {
	limiter, clock := onePerSecond()
	q := newQueue(t, limiter, nil)
	require.Equal(t, 0*second, q.When("a"))
	require.Equal(t, 1*second, q.When("b"))
	require.Equal(t, 2*second, q.When("c"))
	clock.Advance(300 * time.Millisecond)
	require.Equal(t, 700*time.Millisecond, q.When("b"), "it keeps its permit")
	require.Equal(t, 2700*time.Millisecond, q.When("a"), "the other one was used")
	require.Equal(t, 2, q.NumRequeues("b"))
	require.Equal(t, 1, q.NumRequeues("c"))
	require.Zero(t, q.NumRequeues("d"))
}

// What has not come due is given back, and those behind it move up; what has, stays taken.
func TestForget(t *testing.T) {
	limiter, clock := onePerSecond(pace.WithBurst(0))
	q := newQueue(t, limiter, nil)
	for i, of := range []string{"a", "b", "c", "d"} {
		require.Equal(t, time.Duration(i)*second, q.When(of))
	}
	q.Forget("b")
	q.Forget("b")
	require.Zero(t, q.NumRequeues("b"))
	require.Equal(t, 1*second, q.When("c"))
	require.Equal(t, 2*second, q.When("d"))
	q.Forget("a") // it came due at once
	q.Forget("nobody")
	require.Equal(t, 3*second, q.When("b"))
	clock.Advance(10 * second)
	for _, of := range []string{"b", "c", "d"} {
		q.Forget(of)
	}
	require.Equal(t, 0*second, q.When("e"))
	require.Equal(t, 1*second, q.When("f"))
}

func TestPerItemAndOverall(t *testing.T) {
	clock := clockwork.NewFakeClock()
	slow := reserve.Must(pace.Bursty(0.1, pace.WithBurst(0), reserve.WithClock(clock)))
	each := keyed.New(func(string) (*reserve.Policy, error) { return slow, nil })
	overall := reserve.Must(pace.NewBursty(1, pace.WithBurst(0), reserve.WithClock(clock)))
	q := newQueue(t, overall, each.For)
	require.Equal(t, 0*second, q.When("a"))
	require.Equal(t, 1*second, q.When("b"))
	require.Equal(t, 10*second, q.When("a"))
	alone := newQueue(t, nil, each.For)
	require.Equal(t, 10*second, alone.When("b"))
	require.Equal(t, 0*second, alone.When("c"))
}

// Items without a Forget are forgotten when there are many others.
func TestBoundedMemory(t *testing.T) {
	limiter, _ := onePerSecond()
	q, err := NewQueueLimiter[int](limiter, nil)
	require.NoError(t, err)
	q.most = 100
	for i := range 10_000 {
		q.When(i)
		q.When(0)
		require.LessOrEqual(t, len(q.recent)+len(q.older), 200)
	}
	require.Equal(t, 10_001, q.NumRequeues(0), "one that is asked for is remembered")
	require.Equal(t, 1, q.NumRequeues(9_950))
	require.Zero(t, q.NumRequeues(1))
}

// When has no error to return: a limiter that fails makes an item wait.
func TestQueueLimiterFails(t *testing.T) {
	q := newQueue(t, reserver(down), nil)
	require.Equal(t, second, q.When("a"))
	require.Equal(t, 1, q.NumRequeues("a"))
	q.Forget("a")

	limiter, _ := onePerSecond(reserve.WithMaxWait(second))
	q = newQueue(t, limiter, nil)
	for i := range 4 {
		require.InDelta(t, i, q.When(string(rune('a'+i))).Seconds(), 0.1)
	}

	for _, none := range []reserve.Reserver{nil, (*reserve.Limiter)(nil)} {
		q = newQueue(t, nil, func(string) reserve.Reserver { return none })
		require.Equal(t, second, q.When("a"))
	}

	q = newQueue(t, limiter, func(string) reserve.Reserver { panic("key") })
	require.PanicsWithValue(t, "key", func() { q.When("a") })
	require.Equal(t, 1, q.NumRequeues("a"), "no lock is left behind")

	_, err := NewQueueLimiter[string](nil, nil)
	require.EqualError(t, err, "pacek8s: the limiter is <nil>; want a limiter")
	_, err = NewQueueLimiter((*reserve.Limiter)(nil), func(string) reserve.Reserver { return limiter })
	require.Error(t, err)
}

// Client-go's queue hands the items out at the rate.
func TestWorkqueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newQueue(t, reserve.Must(pace.NewBursty(10, pace.WithBurst(0))), nil)
		queue := workqueue.NewTypedRateLimitingQueue[string](limiter)
		defer queue.ShutDown()
		begin := time.Now()
		for i := range 20 {
			queue.AddRateLimited(string(rune('a' + i)))
		}
		for i := range 20 {
			of, _ := queue.Get()
			require.Equal(t, time.Duration(i)*100*time.Millisecond, time.Since(begin))
			queue.Forget(of)
			queue.Done(of)
		}
	})
}

// An item that is asked for while its permit is being reserved has one permit all the same.
func TestOneItemTogether(t *testing.T) {
	limiter, _ := onePerSecond(pace.WithBurst(0))
	var q *QueueLimiter[string]
	again := false
	q = newQueue(t, limiter, func(of string) reserve.Reserver {
		if of == "a" && !again {
			again = true
			require.Equal(t, 1*second, q.When("a"))
		}
		return reserve.All()
	})
	require.Zero(t, q.When("other"))
	require.Equal(t, 1*second, q.When("a"))
	require.Equal(t, 2, q.NumRequeues("a"))
	require.Equal(t, 2*second, q.When("b"))
}

// An item that is forgotten while its permit is being reserved can be forgotten again, with that
// permit.
func TestForgottenMeanwhile(t *testing.T) {
	limiter, _ := onePerSecond(pace.WithBurst(0))
	var q *QueueLimiter[string]
	q = newQueue(t, limiter, func(of string) reserve.Reserver {
		if of == "a" {
			q.Forget("a")
		}
		return reserve.All()
	})
	require.Zero(t, q.When("other"))
	require.Equal(t, 1*second, q.When("a"))
	require.Equal(t, 1, q.NumRequeues("a"))
	q.Forget("a")
	require.Equal(t, 1*second, q.When("b"))
}

// An item that has a permit does not ask for another, which might be refused.
func TestKeepsItsPermit(t *testing.T) {
	limiter, _ := onePerSecond(pace.WithBurst(0), reserve.WithMaxWait(second))
	q := newQueue(t, limiter, nil)
	require.Zero(t, q.When("other"))
	require.Equal(t, 1*second, q.When("a"))
	require.Equal(t, 1*second, q.When("a"))
}
