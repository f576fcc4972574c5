package fifo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

func evenly(rate float64) *reserve.Limiter {
	return reserve.Must(pace.NewBursty(rate, pace.WithBurst(0)))
}

// A book records when calls went.
type book struct {
	lines Lines
	begin time.Time
	mu    sync.Mutex
	went  []string
	all   sync.WaitGroup
}

// call makes a call, with a number, and records when it went, or its error. It returns when the call is in line.
func (b *book) call(ctx context.Context, name string, number uint64, set any, maxWait time.Duration, limits ...Limit) {
	b.all.Go(func() {
		err := b.lines.Acquire(ctx, set, number, limits, maxWait)
		b.mu.Lock()
		defer b.mu.Unlock()
		var wait *reserve.WaitError
		switch at := time.Since(b.begin).Round(time.Millisecond); {
		case err == nil:
			b.went = append(b.went, fmt.Sprint(name, " ", at))
		case errors.As(err, &wait):
			b.went = append(b.went, fmt.Sprint(name, " ", at, " refused: ", wait.Wait.Round(time.Millisecond)))
		default:
			b.went = append(b.went, fmt.Sprint(name, " ", at, " ", err))
		}
	})
	synctest.Wait()
}

func bubble(t *testing.T, f func(t *testing.T, b *book)) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{begin: time.Now()}
		f(t, b)
		b.all.Wait()
		require.Empty(t, b.lines.lines, "nothing is remembered")
	})
}

// Requests and tokens: all are charged at the moment the call goes, so the faster limit spaces them, too.
func TestAllAtTheMomentItGoes(t *testing.T) {
	bubble(t, func(t *testing.T, b *book) {
		requests, tokens := evenly(10), evenly(1000)
		for i, cost := range []int{500, 100, 50, 50, 500, 10} {
			b.call(t.Context(), fmt.Sprint(cost), uint64(i), "a", reserve.Forever, Limit{By: requests, Permits: 1}, Limit{By: tokens, Permits: cost})
		}
		b.all.Wait()
		require.Equal(t, []string{"500 0s", "100 500ms", "50 600ms", "50 700ms", "500 800ms", "10 1.3s"}, b.went)
	})
}

// One that gives up, in front or in the middle, has taken nothing, and those behind it move up.
func TestGiveUp(t *testing.T) {
	bubble(t, func(t *testing.T, b *book) {
		requests, tokens := evenly(10), evenly(1000)
		ctx, cancel := context.WithCancelCause(t.Context())
		ask := func(n int) []Limit { return []Limit{{By: requests, Permits: 1}, {By: tokens, Permits: n}} }
		b.call(t.Context(), "a", 0, "a", reserve.Forever, ask(1000)...)
		b.call(ctx, "b", 1, "a", reserve.Forever, ask(5000)...)
		b.call(t.Context(), "c", 2, "a", reserve.Forever, ask(1000)...)
		b.call(ctx, "d", 3, "a", reserve.Forever, ask(5000)...)
		b.call(t.Context(), "e", 4, "a", reserve.Forever, ask(1)...)
		<-time.After(500 * time.Millisecond)
		cancel(errors.New("gone"))
		b.all.Wait()
		require.ElementsMatch(t, []string{"a 0s", "b 500ms gone", "d 500ms gone", "c 1s", "e 2s"}, b.went)
	})
}

// A call that can't go in time is told at once, and how long it would have been.
func TestTooLate(t *testing.T) {
	bubble(t, func(t *testing.T, b *book) {
		requests, tokens := evenly(10), evenly(1000)
		ask := func(n int) []Limit { return []Limit{{By: requests, Permits: 1}, {By: tokens, Permits: n}} }
		for i := range 3 {
			b.call(t.Context(), fmt.Sprint(i), uint64(i), "a", reserve.Forever, ask(1000)...)
		}
		b.call(t.Context(), "late", 3, "a", 2900*time.Millisecond, ask(1)...)
		b.call(t.Context(), "in time", 4, "a", 3*time.Second, ask(1)...)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		b.call(ctx, "deadline", 5, "a", reserve.Forever, ask(1)...)
		b.all.Wait()
		require.Equal(t, []string{"0 0s", "late 0s refused: 3s", "deadline 0s refused: 3.001s", "1 1s", "2 2s", "in time 3s"}, b.went)
	})
}

// A call that asks again goes before calls that came after it.
func TestAgain(t *testing.T) {
	bubble(t, func(t *testing.T, b *book) {
		requests := evenly(10)
		for i := range 4 {
			b.call(t.Context(), fmt.Sprint(i), uint64(i), "a", reserve.Forever, Limit{By: requests, Permits: 1})
		}
		require.NoError(t, b.lines.Refuse(t.Context(), "a", 0, []Limit{{By: requests, Permits: 1}}, 200*time.Millisecond))
		require.Error(t, b.lines.Refuse(t.Context(), "a", 9, []Limit{{By: requests, Permits: 1}}, 200*time.Millisecond))
		b.call(t.Context(), "0 again", 0, "a", reserve.Forever, Limit{By: requests, Permits: 1})
		b.all.Wait()
		require.Equal(t, []string{"0 0s", "1 100ms", "0 again 200ms", "2 300ms", "3 400ms"}, b.went)
	})
}

// One key never slows another: calls that wait for a limit of their own take nothing of the one they share.
func TestKeysThatShareALimit(t *testing.T) {
	bubble(t, func(t *testing.T, b *book) {
		host := evenly(10)
		for user := range 50 {
			own := evenly(10)
			own.PauseUntil(b.begin.Add(time.Minute))
			b.call(t.Context(), "stopped", uint64(user), user, reserve.Forever, Limit{By: host, Permits: 1}, Limit{By: own, Permits: 1})
		}
		for i := range 5 {
			b.call(t.Context(), fmt.Sprint(i), uint64(100+i), "free", reserve.Forever, Limit{By: host, Permits: 1}, Limit{By: evenly(100), Permits: 1})
		}
		<-time.After(time.Second)
		b.mu.Lock()
		require.Equal(t, []string{"0 0s", "1 100ms", "2 200ms", "3 300ms", "4 400ms"}, b.went)
		b.mu.Unlock()
		b.all.Wait()
		require.Len(t, b.went, 55)
		require.Equal(t, "stopped 1m4.9s", b.went[54], "spaced by what they share")
	})
}

// Others that keep both limits busy do not starve it.
func TestBusyLimits(t *testing.T) {
	bubble(t, func(t *testing.T, b *book) {
		one, two := evenly(10), evenly(9)
		ctx, cancel := context.WithCancel(t.Context())
		for _, l := range []*reserve.Limiter{one, two} {
			for range 5 {
				b.all.Go(func() {
					for ctx.Err() == nil {
						l.Acquire(ctx, 1)
					}
				})
			}
		}
		synctest.Wait()
		for i := range 10 {
			b.call(t.Context(), fmt.Sprint(i), uint64(i), "a", reserve.Forever, Limit{By: one, Permits: 1}, Limit{By: two, Permits: 1})
		}
		<-time.After(60 * time.Second)
		b.mu.Lock()
		require.Len(t, b.went, 10)
		b.mu.Unlock()
		cancel()
	})
}

// A call that costs more than a limit can ever hold goes when it is full.
func TestMoreThanItHolds(t *testing.T) {
	bubble(t, func(t *testing.T, b *book) {
		full := reserve.Must(pace.NewTokenBucket(10, 20))
		require.True(t, full.TryAcquire(10))
		b.call(t.Context(), "50", 0, "a", reserve.Forever, Limit{By: full, Permits: 50})
		b.all.Wait()
		require.Equal(t, []string{"50 1s"}, b.went)
	})
}

// bare is a Reserver and nothing else.
type bare struct{ l *reserve.Limiter }

func (b bare) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error) {
	return b.l.ReserveWithin(ctx, n, maxWait)
}

// A limiter that can't be paused has a gate, alone and with others.
func TestGates(t *testing.T) {
	for _, others := range [][]Limit{nil, {{By: evenly(1000), Permits: 1}}} {
		bubble(t, func(t *testing.T, b *book) {
			if others != nil {
				others[0].By = evenly(1000)
			}
			gate, limiter := evenly(math.Inf(1)), evenly(10)
			for i := range 4 {
				b.call(t.Context(), fmt.Sprint(i), uint64(i), "a", reserve.Forever, append([]Limit{{By: bare{limiter}, Permits: 1, Gate: gate}}, others...)...)
			}
			<-time.After(50 * time.Millisecond)
			gate.PauseUntil(b.begin.Add(time.Second))
			b.all.Wait()
			for i, went := range b.went {
				_, b.went[i], _ = strings.Cut(went, " ") // a limiter that is alone has an order of its own
			}
			require.Equal(t, []string{"0s", "1s", "1.1s", "1.2s"}, b.went)
		})
	}
}

// Calls that go soon have their reservations already: a program that is slow to wake one of them loses nothing.
func TestSoon(t *testing.T) {
	bubble(t, func(t *testing.T, b *book) {
		one := evenly(50)
		for i := range 10 {
			b.call(t.Context(), fmt.Sprint(i), uint64(i), "a", reserve.Forever, Limit{By: one, Permits: 1})
		}
		require.Equal(t, b.begin.Add(80*time.Millisecond), one.NextFree(), "at 0, 20, 40 and 60 ms")
		b.call(t.Context(), "late", 10, "a", 199*time.Millisecond, Limit{By: one, Permits: 1})
		b.all.Wait()
		require.Equal(t, "late 0s refused: 200ms", b.went[1])
		require.Equal(t, "9 180ms", b.went[10])
	})
}

// Behind more than a window holds, a call is told at once, too, that it would wait for too long.
func TestOutlookBehindWindows(t *testing.T) {
	bubble(t, func(t *testing.T, b *book) {
		by := reserve.Must(window.New(10, time.Minute))
		limit := func() Limit { return Limit{By: by, Permits: 5} }
		for i := range 7 {
			b.call(t.Context(), fmt.Sprint(i), uint64(i), "a", reserve.Forever, limit())
		}
		b.call(t.Context(), "soon", 7, "a", time.Minute, limit())
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		b.call(ctx, "by its deadline", 8, "a", reserve.Forever, limit())
		b.call(t.Context(), "late", 9, "a", 3*time.Minute, limit())
		b.all.Wait()
		require.ElementsMatch(t, []string{"0 0s", "1 0s", "soon 0s refused: 3m0s", "by its deadline 0s refused: 3m0s", "2 1m0s", "3 1m0s", "4 2m0s", "5 2m0s", "6 3m0s", "late 3m0s"}, b.went)
	})
}

// A limit that was as far off as the last one, and has moved up since, is charged when the call goes all the same.
func TestALimitThatMovesUpIsChargedWhenTheCallGoes(t *testing.T) {
	bubble(t, func(t *testing.T, b *book) {
		requests, tokens := evenly(1), evenly(1)
		require.True(t, requests.TryAcquire(1))
		before, err := tokens.Reserve(t.Context(), 1)
		require.NoError(t, err)
		b.call(t.Context(), "call", 0, "a", reserve.Forever, Limit{By: requests, Permits: 1}, Limit{By: tokens, Permits: 1})
		<-time.After(500 * time.Millisecond)
		before.Cancel() // so the call might have had its token now
		b.all.Wait()
		require.Equal(t, []string{"call 1s"}, b.went)
		require.Equal(t, 2*time.Second, tokens.NextFree().Sub(b.begin))
	})
}

// The calls ahead are looked at, one by one, only for a call that may be refused: for its own longest wait, its
// deadline, or a limiter's longest wait.
func TestLongestWaits(t *testing.T) {
	for _, c := range []struct {
		name    string
		limiter []reserve.Option
		maxWait time.Duration
		timeout time.Duration
		last    string
	}{
		{"none", nil, reserve.Forever, time.Hour, "d 3s"},
		{"the call's", nil, 2500 * time.Millisecond, time.Hour, "d 0s refused: 3s"},
		{"the deadline's", nil, reserve.Forever, 2500 * time.Millisecond, "d 0s refused: 3s"},
		{"the limiter's", []reserve.Option{reserve.WithMaxWait(2500 * time.Millisecond)}, reserve.Forever, time.Hour, "d 0s refused: 3s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *book) {
				by := reserve.Must(pace.NewBursty(1, append(c.limiter, pace.WithBurst(0))...))
				for _, name := range []string{"a", "b", "c"} {
					b.call(t.Context(), name, 0, "set", reserve.Forever, Limit{By: by, Permits: 1})
				}
				ctx := t.Context()
				if c.timeout < time.Hour {
					var cancel func()
					ctx, cancel = context.WithTimeout(ctx, c.timeout)
					defer cancel()
				}
				b.call(ctx, "d", 0, "set", c.maxWait, Limit{By: by, Permits: 1})
				b.all.Wait()
				require.Contains(t, b.went, c.last)
			})
		})
	}
}

// A call that may wait for any time is not told what is ahead.
func TestArrival(t *testing.T) {
	bubble(t, func(t *testing.T, b *book) {
		by := reserve.Must(window.New(1, time.Minute))
		w := &waiter{limits: []Limit{{By: by, Permits: 1}}}
		b.lines.enter("set", w, false)
		waiting := &waiter{limits: []Limit{{By: by, Permits: 1}}}
		require.Nil(t, b.lines.enter("set", waiting, false))
		hurried := &waiter{limits: []Limit{{By: by, Permits: 1}}}
		require.Equal(t, [][]int{{1, 1}}, b.lines.enter("set", hurried, true))
		for _, one := range []*waiter{w, waiting, hurried} {
			b.lines.leave("set", one)
		}
	})
}
