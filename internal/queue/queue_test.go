package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nextfree/pace/internal/limit"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

func evenly(rate float64) *reserve.Limiter {
	return reserve.Must(pace.NewBursty(rate, pace.WithBurst(0)))
}

// A log says who went when.
type log struct {
	begin time.Time
	mu    sync.Mutex
	went  []string
	all   sync.WaitGroup
}

// ask enters a place, and returns when it waits or is over.
func (l *log) ask(q *queue.Queue, name string, p *queue.Place, maxWait time.Duration) {
	l.all.Go(func() {
		err := q.Enter(context.Background(), p, maxWait)
		if err == nil {
			err = p.Wait(context.Background())
		}
		var wait *reserve.WaitError
		what := fmt.Sprint(name, " ", time.Since(l.begin).Round(time.Millisecond))
		switch {
		case errors.As(err, &wait) && wait.Wait == reserve.Forever:
			what += " refused: nobody knows"
		case errors.As(err, &wait):
			what += fmt.Sprint(" refused: ", wait.Wait.Round(time.Millisecond))
		case err != nil:
			what += " " + err.Error()
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.went = append(l.went, what)
	})
	synctest.Wait()
}

func bubble(t *testing.T, f func(t *testing.T, l *log)) {
	synctest.Test(t, func(t *testing.T) {
		l := &log{begin: time.Now()}
		f(t, l)
		l.all.Wait()
	})
}

func option(limits ...queue.Limit) queue.Option { return queue.Option{Limits: limits} }

// All limits are charged when a request goes, so the faster one spaces requests too.
func TestAllWhenItGoes(t *testing.T) {
	bubble(t, func(t *testing.T, l *log) {
		options := []queue.Option{option(queue.Limit{By: limit.Of(evenly(10)), Permits: 1}, queue.Limit{By: limit.Of(evenly(1000))})}
		q := queue.New(queue.Settings{}, options)
		for _, n := range []int{500, 100, 50, 50, 500, 10} {
			l.ask(q, fmt.Sprint(n), &queue.Place{Permits: n, Options: options}, reserve.Forever)
		}
		l.ask(q, "late", &queue.Place{Permits: 1, Options: options}, 1209*time.Millisecond)
		l.ask(q, "in time", &queue.Place{Permits: 1, Options: options}, 1400*time.Millisecond)
		l.all.Wait()
		require.Equal(t, []string{
			"500 0s", "late 0s refused: 1.21s", "100 500ms", "50 600ms", "50 700ms", "500 800ms", "10 1.3s", "in time 1.4s",
		}, l.went)
	})
}

// With a free at 60 s and b at 30 s, the request behind one that b has refused goes at 30 s.
func TestHoldsUpNobody(t *testing.T) {
	bubble(t, func(t *testing.T, l *log) {
		a, b := evenly(10), evenly(10)
		a.PauseUntil(l.begin.Add(time.Minute))
		b.PauseUntil(l.begin.Add(30 * time.Second))
		options := []queue.Option{option(queue.Limit{By: limit.Of(a)}), option(queue.Limit{By: limit.Of(b)})}
		q := queue.New(queue.Settings{}, options)
		l.ask(q, "refused by b", &queue.Place{Permits: 1, Options: options, Except: func(i int) bool { return i == 1 }}, reserve.Forever)
		l.ask(q, "next", &queue.Place{Permits: 1, Options: options}, reserve.Forever)
		l.ask(q, "another", &queue.Place{Permits: 1, Options: options}, reserve.Forever)
		l.all.Wait()
		require.Equal(t, []string{"next 30s", "another 30.1s", "refused by b 1m0s"}, l.went)
	})
}

// A place in flight is a limit: nobody knows when one comes back, and a request that asks again goes before later ones.
func TestPlaces(t *testing.T) {
	bubble(t, func(t *testing.T, l *log) {
		seats := queue.NewPlaces(2)
		options := []queue.Option{option(queue.Limit{By: limit.Of(evenly(1))}, queue.Limit{By: limit.Of(seats), Permits: 1})}
		q := queue.New(queue.Settings{}, options)
		places := make([]queue.Place, 5)
		var rank queue.Rank
		for i := range places {
			places[i] = queue.Place{Permits: 1, Options: options}
			if i == 0 {
				places[i].Rank = &rank
			}
			maxWait := reserve.Forever
			if i == 3 {
				maxWait = 5 * time.Second
			}
			l.ask(q, fmt.Sprint(i), &places[i], maxWait)
		}
		time.Sleep(9500 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []string{"0 0s", "1 1s", "3 5s refused: nobody knows"}, l.went)
		require.Equal(t, 2, seats.Out())
		again := queue.Place{Permits: 1, Options: options, Rank: &rank}
		places[0].Held(1).Cancel()
		synctest.Wait()
		l.ask(q, "0 again", &again, reserve.Forever)
		time.Sleep(time.Second)
		places[1].Held(1).Cancel()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"2 9.5s", "0 again 10.5s"}, l.went[3:])
		seats.Resize(3)
		l.all.Wait()
		require.Equal(t, []string{"4 12.5s"}, l.went[5:])
	})
}

// A request that waits is known from when it is numbered: of 1,000 callers with a deadline, those that can't go in time
// are told at once, and all others go.
func TestToldAtOnce(t *testing.T) {
	for range 10 {
		synctest.Test(t, toldAtOnce)
	}
}

// A request that comes while another is being bound is told at once that it is too late, also if the other has not yet
// reserved.
func TestToldWhileAnotherIsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := []queue.Option{option(queue.Limit{By: limit.Of(evenly(10))})}
		q := queue.New(queue.Settings{}, options)
		told := make(chan error, 1)
		first := &queue.Place{Permits: 1, Options: options}
		first.Renew = func() error {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				told <- goes(ctx, q, &queue.Place{Permits: 1, Options: options})
			}()
			for range 100 {
				runtime.Gosched()
			}
			return nil
		}
		require.NoError(t, q.Enter(t.Context(), first, reserve.Forever))
		require.NoError(t, first.Wait(t.Context()))
		begin := time.Now()
		require.ErrorAs(t, <-told, new(*reserve.WaitError))
		require.Zero(t, time.Since(begin))
	})
}

func goes(ctx context.Context, q *queue.Queue, p *queue.Place) error {
	if err := q.Enter(ctx, p, reserve.Forever); err != nil {
		return err
	}
	return p.Wait(ctx)
}

// overtaken closes no option, and lets callers that came later enter first.
func overtaken(int) bool {
	runtime.Gosched()
	return false
}

func toldAtOnce(t *testing.T) {
	begin := time.Now()
	options := []queue.Option{option(queue.Limit{By: limit.Of(evenly(10))}, queue.Limit{By: limit.Of(evenly(200))})}
	q := queue.New(queue.Settings{Slack: 50 * time.Millisecond}, options)
	var mu sync.Mutex
	var all sync.WaitGroup
	went := 0
	for range 1_000 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			err := goes(ctx, q, &queue.Place{Permits: 1, Options: options, Except: overtaken})
			if err != nil {
				require.ErrorAs(t, err, new(*reserve.WaitError))
				require.Zero(t, time.Since(begin))
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				went++
			}
		})
	}
	all.Wait()
	require.Equal(t, 601, went)
}

// A pause makes a request too late that asks for less than the first. Where a request's time does not depend on its
// size it is told at once, otherwise at its deadline: without the first it could go earlier.
func TestSmallerBehindLarger(t *testing.T) {
	for name, c := range map[string]struct {
		limit func() *reserve.Limiter
		told  string
	}{
		"the next pays": {func() *reserve.Limiter { return evenly(1) }, "small 2s refused: 58s"},
		"upfront": {
			func() *reserve.Limiter { return reserve.Must(pace.NewTokenBucket(1, 20)) }, "small 35s refused: 35s",
		},
		"window": {
			func() *reserve.Limiter { return reserve.Must(window.New(10, 6*time.Second)) }, "small 35s refused: 35s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, l *log) {
				by := c.limit()
				options := []queue.Option{option(queue.Limit{By: limit.Of(by)})}
				q := queue.New(queue.Settings{}, options)
				for _, n := range []int{10, 5, 8, 10} {
					l.ask(q, strconv.Itoa(n), &queue.Place{Permits: n, Options: options}, reserve.Forever)
				}
				l.ask(q, "small", &queue.Place{Permits: 1, Options: options}, 35*time.Second)
				time.Sleep(2 * time.Second)
				by.PauseUntil(l.begin.Add(50 * time.Second))
				l.all.Wait()
				require.Contains(t, l.went, c.told)
			})
		})
	}
}

// With slack a place is granted before its time, and waits for the rest: what wakes late then loses nothing.
func TestSlack(t *testing.T) {
	bubble(t, func(t *testing.T, l *log) {
		by := evenly(50)
		options := []queue.Option{option(queue.Limit{By: limit.Of(by)})}
		q := queue.New(queue.Settings{Slack: 50 * time.Millisecond}, options)
		for i := range 10 {
			l.ask(q, fmt.Sprint(i), &queue.Place{Permits: 1, Options: options}, reserve.Forever)
		}
		require.Equal(t, 7, q.Waiting(), "two went before their time")
		require.EqualValues(t, 3+1, by.Snapshot().Granted, "the first that waits has a promise")
		l.all.Wait()
		require.Equal(t, []string{"0 0s", "1 20ms", "2 40ms", "3 60ms", "4 80ms", "5 100ms", "6 120ms", "7 140ms", "8 160ms", "9 180ms"}, l.went)
	})
}

// What holds without a model, in random programs of several options, limits that they share, places in flight,
// deadlines, cancels, closed options and pauses: no limit is exceeded, nobody waits while the first could go, nobody
// goes too late, and at the end nothing is held.
func TestInvariant(t *testing.T) {
	for seed := range runs(200) {
		if s, err := strconv.Atoi(os.Getenv("SEED")); err == nil {
			seed = uint64(s)
		}
		synctest.Test(t, func(t *testing.T) { invariant(t, seed) })
	}
}

func invariant(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 2))
	begin := time.Now()
	shared, seats := evenly(5+10*random.Float64()), queue.NewPlaces(1+random.IntN(3))
	members := make([]*reserve.Limiter, 1+random.IntN(3))
	var options []queue.Option
	for i := range members {
		members[i] = evenly(1 + 5*random.Float64())
		options = append(options, option(queue.Limit{By: limit.Of(shared), Permits: 1}, queue.Limit{By: limit.Of(seats), Permits: 1}, queue.Limit{By: limit.Of(members[i])}))
	}
	q := queue.New(queue.Settings{Slack: time.Duration(random.IntN(2)) * 50 * time.Millisecond}, options)
	var all sync.WaitGroup
	var mu sync.Mutex
	granted := make([]int, len(members))
	out, went := 0, 0
	waiting := map[*queue.Place]bool{}
	for range 40 {
		at, permits, closed := time.Duration(random.IntN(10_000))*time.Millisecond, 1+random.IntN(3), random.IntN(2*len(members))
		timeout, takes := time.Duration(random.IntN(20_000))*time.Millisecond, time.Duration(random.IntN(1000))*time.Millisecond
		all.Go(func() {
			time.Sleep(at)
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			p := &queue.Place{Permits: permits, Options: options, Except: func(i int) bool { return i == closed && len(members) > 1 }}
			mu.Lock()
			err := q.Enter(ctx, p, reserve.Forever)
			waiting[p] = closed >= len(members) || len(members) == 1
			mu.Unlock()
			if err == nil {
				err = p.Wait(ctx)
			}
			mu.Lock()
			delete(waiting, p)
			if err != nil {
				mu.Unlock()
				return
			}
			require.LessOrEqual(t, time.Since(begin), at+timeout)
			require.False(t, p.Option() == closed && len(members) > 1)
			granted[p.Option()] += permits
			out, went = out+1, went+1
			require.LessOrEqual(t, float64(went-1), shared.Rate()*time.Since(begin).Seconds()+1e-6)
			mu.Unlock()
			time.Sleep(takes)
			mu.Lock()
			out--
			p.Held(1).Cancel()
			mu.Unlock()
		})
	}
	for range 3 {
		at, pause, i := time.Duration(random.IntN(10_000))*time.Millisecond, time.Duration(random.IntN(3000))*time.Millisecond, random.IntN(len(members))
		all.Go(func() {
			time.Sleep(at)
			members[i].PauseUntil(time.Now().Add(pause))
		})
	}
	for range 100 {
		time.Sleep(137 * time.Millisecond)
		synctest.Wait()
		mu.Lock()
		someone := false
		for _, any := range waiting {
			someone = someone || any
		}
		for i := range options {
			a, _ := shared.Peek(1)
			b, _ := members[i].Peek(3)
			require.False(t, someone && a == 0 && b == 0 && seats.Out() < 1, "seed %d at %v: option %d is free", seed, time.Since(begin), i)
		}
		mu.Unlock()
	}
	all.Wait()
	require.Zero(t, q.Waiting())
	require.Zero(t, seats.Out())
	for i, m := range members {
		s := m.Snapshot()
		require.EqualValues(t, granted[i], s.Granted-s.GivenBack, "seed %d", seed)
	}
	s := shared.Snapshot()
	require.EqualValues(t, went, s.Granted-s.GivenBack)
}

// A request at one or two limits that nothing holds up allocates nothing: its caller has the memory for it.
func TestNoAllocation(t *testing.T) {
	for limits := 1; limits <= 2; limits++ {
		options := []queue.Option{{}}
		for range limits {
			options[0].Limits = append(options[0].Limits, queue.Limit{By: limit.Of(reserve.Must(pace.NewBursty(1e12)))})
		}
		q := queue.New(queue.Settings{Slack: 50 * time.Millisecond}, options)
		var p queue.Place
		require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
			p = queue.Place{Permits: 1, Options: options}
			require.NoError(t, q.Enter(context.Background(), &p, reserve.Forever))
		}), 0.0, "%d limits", limits)
	}
}

// Two queues that share places in flight get them in the order in which their requests came, whatever each has served
// before.
func TestPlacesOfTwoQueues(t *testing.T) {
	bubble(t, func(t *testing.T, l *log) {
		seats := queue.NewPlaces(1)
		options := []queue.Option{option(queue.Limit{By: limit.Of(seats), Permits: 1})}
		old, fresh := queue.New(queue.Settings{}, options), queue.New(queue.Settings{}, options)
		for range 10 {
			p := &queue.Place{Permits: 1, Options: options}
			require.NoError(t, old.Enter(context.Background(), p, 0))
			p.Cancel()
		}
		places, ranks := make([]queue.Place, 5), make([]queue.Rank, 5)
		for i := range places {
			places[i] = queue.Place{Permits: 1, Options: options, Rank: &ranks[i]}
			l.ask([]*queue.Queue{old, fresh}[i%2], fmt.Sprint(i), &places[i], reserve.Forever)
		}
		for i := range places {
			time.Sleep(time.Second)
			synctest.Wait()
			require.Len(t, l.went, i+1)
			places[i].Held(0).Cancel()
		}
		l.all.Wait()
		require.Equal(t, []string{"0 0s", "1 1s", "2 2s", "3 3s", "4 4s"}, l.went)
	})
}

// A request that moves to another option gives others room at a limit of all, and three queues give way to each other:
// each at most once a millisecond. Before, they did so without end, on one processor.
func TestQueuesGiveWayForAWhile(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	bubble(t, func(t *testing.T, l *log) {
		all, first, second := evenly(2), evenly(1000), evenly(1000)
		require.True(t, all.TryAcquire(1))
		first.PauseUntil(l.begin.Add(700 * time.Millisecond))
		options := []queue.Option{
			option(queue.Limit{By: limit.Of(all)}, queue.Limit{By: limit.Of(first)}), option(queue.Limit{By: limit.Of(all)}, queue.Limit{By: limit.Of(second)}),
		}
		const many = 20_000
		var choices atomic.Int64
		prefers := func(*queue.Place) int {
			if choices.Add(1) > many {
				return -1
			}
			return 1
		}
		for i := range 3 {
			q := queue.New(queue.Settings{Prefers: prefers}, options)
			l.ask(q, fmt.Sprint(i), &queue.Place{Permits: 1, Options: options}, reserve.Forever)
		}
		second.PauseUntil(l.begin.Add(800 * time.Millisecond))
		l.all.Wait()
		require.Less(t, choices.Load(), int64(many))
		for i, at := range []string{"700ms", "1.2s", "1.7s"} {
			require.Equal(t, at, l.went[i][2:], l.went)
		}
	})
}

// A forecast counts what is ahead in a limit's own permits, also at the fifth limit of an option.
func TestForecastOfManyLimits(t *testing.T) {
	bubble(t, func(t *testing.T, l *log) {
		var limits []queue.Limit
		for range 4 {
			limits = append(limits, queue.Limit{By: limit.Of(evenly(1e6))})
		}
		limits = append(limits, queue.Limit{By: limit.Of(evenly(1)), Permits: 1})
		options := []queue.Option{option(limits...)}
		q := queue.New(queue.Settings{}, options)
		for i := range 10 {
			l.ask(q, strconv.Itoa(i), &queue.Place{Permits: 1000, Options: options, Rank: &queue.Rank{}}, reserve.Forever)
		}
		last := &queue.Place{Permits: 1000, Options: options, Rank: &queue.Rank{}}
		require.NoError(t, q.Enter(t.Context(), last, reserve.Forever))
		require.InDelta(t, 10, last.Delay().Seconds(), .1)
		last.Cancel()
	})
}
