package queue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

// runs returns how many random runs to make: PACE_RUNS says so, or else some.
func runs(some int) uint64 {
	if n, err := strconv.Atoi(os.Getenv("PACE_RUNS")); err == nil {
		some = n
	}
	return uint64(some)
}

// A scenario is a random program. It is played on a queue and on the model, each with limiters of its own.
type scenario struct {
	limits   []func() *reserve.Limiter
	options  [][]queue.Limit // the limits by number, as their By is not made yet
	of       [][]int         // by option: the numbers of its limits
	requests []request
	changes  []change
	slack    time.Duration
}

type request struct {
	at, leaves time.Duration // leaves: when it gives up; 0: never
	permits    int
	refused    []bool // options that are closed to it
	settles    int    // when it goes; 0: it does not settle
}

// A change stops a limit for a while, or retimes it.
type change struct {
	at, until time.Duration
	limit     int
	rate      float64 // 0: a pause
}

func (c *change) do(limits []*reserve.Limiter, begin time.Time) {
	if c.rate > 0 {
		reserve.Must(0, limits[c.limit].Retime(c.rate))
	} else {
		limits[c.limit].PauseUntil(begin.Add(c.until))
	}
}

func newScenario(random *rand.Rand) *scenario {
	s := &scenario{}
	several := random.IntN(2) == 0
	options, shared, own := 1, 1+random.IntN(3), 0
	if several {
		options, shared, own = 2+random.IntN(2), random.IntN(2), 1
	}
	limit := func() int {
		rate := 1 + 9*random.Float64()
		kinds := []func() *reserve.Limiter{
			func() *reserve.Limiter { return reserve.Must(pace.NewBursty(rate, pace.WithBurst(0))) },
			func() *reserve.Limiter { return reserve.Must(pace.NewBursty(rate)) },
			func() *reserve.Limiter { return reserve.Must(pace.NewTokenBucket(rate, 8)) },
			func() *reserve.Limiter {
				return reserve.Must(window.New(8, time.Duration(8/rate*float64(time.Second))))
			},
		}
		if several { // where others may pass, a smaller request must not be ready earlier at a limit
			kinds = kinds[:1]
		}
		s.limits = append(s.limits, kinds[random.IntN(len(kinds))])
		return len(s.limits) - 1
	}
	var common []int
	for range shared {
		common = append(common, limit())
	}
	fixed := random.IntN(2) // permits that the first limit asks of each request; 0: its own
	for range options {
		of := slices.Clone(common)
		for range own {
			of = append(of, limit())
		}
		list := make([]queue.Limit, len(of))
		list[0].Permits = fixed
		s.of, s.options = append(s.of, of), append(s.options, list)
	}
	for at := time.Duration(0); len(s.requests) < 30; {
		if random.IntN(3) > 0 {
			at += time.Duration(random.IntN(800)) * time.Millisecond
		}
		at += time.Duration(1 + random.IntN(1000)) // no two at one moment
		r := request{at: at, permits: 1 + random.IntN(6), refused: make([]bool, options)}
		if random.IntN(4) == 0 {
			r.leaves = at + time.Duration(random.Int64N(5e9))
		}
		if several && len(common) == 0 && random.IntN(4) == 0 { // beside a shared limit only the invariant judges
			r.refused[random.IntN(options)] = true
		}
		if random.IntN(4) == 0 && fixed == 0 {
			r.settles = 1 + random.IntN(r.permits)
		}
		s.requests = append(s.requests, r)
	}
	for range random.IntN(3) {
		at := time.Duration(random.Int64N(5e9))
		c := change{at: at, until: at + time.Duration(random.Int64N(5e9)), limit: random.IntN(len(s.limits))}
		if several && random.IntN(2) == 0 { // where nothing is stored: what is bound keeps the price at which it was
			c.rate = 1 + 9*random.Float64()
		}
		s.changes = append(s.changes, c)
	}
	return s
}

// made returns the options with limiters.
func (s *scenario) made() (limits []*reserve.Limiter, options []queue.Option) {
	for _, l := range s.limits {
		limits = append(limits, l())
	}
	for i, list := range s.options {
		list = slices.Clone(list)
		for j := range list {
			list[j].By = limit.Of(limits[s.of[i][j]])
		}
		options = append(options, queue.Option{Limits: list, Tier: i})
	}
	return limits, options
}

// play plays the scenario on a queue, and returns when each request went; -1: it gave up.
func (s *scenario) play(t *testing.T) (went []time.Duration) {
	went = make([]time.Duration, len(s.requests))
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		limits, options := s.made()
		q := queue.New(queue.Settings{Slack: s.slack}, options)
		var all sync.WaitGroup
		var mu sync.Mutex
		granted := make([]int, len(limits))
		for i, r := range s.requests {
			all.Go(func() {
				time.Sleep(r.at)
				ctx, cancel := context.WithCancel(context.Background())
				if defer_ := cancel; r.leaves > 0 {
					time.AfterFunc(r.leaves-r.at, defer_)
				}
				defer cancel()
				p := &queue.Place{Permits: r.permits, Options: options, Except: func(i int) bool { return r.refused[i] }}
				err := q.Enter(ctx, p, reserve.Forever)
				if err == nil {
					err = p.Wait(ctx)
				}
				mu.Lock()
				defer mu.Unlock()
				if went[i] = time.Since(begin); err != nil {
					went[i] = -1
					return
				}
				used := r.permits
				if r.settles > 0 {
					used = r.settles
					p.Settle(used)
				}
				for j, l := range options[p.Option()].Limits {
					granted[s.of[p.Option()][j]] += max(l.Permits, used*min(1, 1-min(l.Permits, 1)))
				}
			})
		}
		for _, c := range s.changes {
			all.Go(func() {
				time.Sleep(c.at)
				c.do(limits, begin)
			})
		}
		all.Wait()
		require.Zero(t, q.Waiting())
		for i, l := range limits {
			s := l.Snapshot()
			require.EqualValues(t, granted[i], s.Granted-s.GivenBack, "exactly what went was charged")
		}
	})
	return went
}

// model is the rule as simply as it can be said: whenever something happens, requests are looked at in the order in
// which they came. One goes if all limits of one of its options have room now. Nobody passes one that can't go, unless
// an option is closed to it.
func (s *scenario) model(t *testing.T) (went []time.Duration) {
	went = make([]time.Duration, len(s.requests))
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		limits, options := s.made()
		var waiting []int
		wait := func(i, option int) (longest time.Duration) {
			for _, l := range options[option].Limits {
				n := s.requests[i].permits
				if l.Permits > 0 {
					n = l.Permits
				}
				d, err := l.By.Peek(n)
				require.NoError(t, err)
				longest = max(longest, d)
			}
			return longest
		}
		// first returns one that may go, and else when one may.
		first := func() (i, option int, next time.Duration) {
			next = time.Hour
			busy := make([]bool, len(limits)) // somebody in front waits there
			for _, i := range waiting {
				option, earliest := -1, time.Hour
				for o := range options {
					if s.requests[i].refused[o] {
						continue
					}
					w := wait(i, o)
					for _, l := range s.of[o] {
						if busy[l] {
							w = max(w, time.Nanosecond)
						}
					}
					if w < earliest { // of several, the one of the lowest tier
						option, earliest = o, w
					}
				}
				if earliest == 0 {
					return i, option, 0
				}
				if next = min(next, earliest); !slices.Contains(s.requests[i].refused, true) {
					return -1, -1, next
				}
				for _, l := range s.of[option] {
					busy[l] = busy[l] || l == s.of[option][len(s.of[option])-1]
				}
			}
			return -1, -1, next
		}
		var events []time.Duration
		for _, r := range s.requests {
			events = append(events, r.at, r.leaves)
		}
		for _, c := range s.changes {
			events = append(events, c.at)
		}
		slices.Sort(events)
		done := make([]bool, len(s.requests))
		changed := 0
		slices.SortFunc(s.changes, func(a, b change) int { return int(a.at - b.at) })
		for left := len(s.requests); left > 0; {
			now := time.Since(begin)
			for ; changed < len(s.changes) && s.changes[changed].at <= now; changed++ {
				s.changes[changed].do(limits, begin)
			}
			for i, r := range s.requests {
				if r.at == now && !done[i] && !slices.Contains(waiting, i) {
					waiting = append(waiting, i)
				}
				if r.leaves > 0 && r.leaves == now && slices.Contains(waiting, i) {
					waiting = slices.DeleteFunc(waiting, func(other int) bool { return other == i })
					went[i], done[i], left = -1, true, left-1
				}
			}
			i, option, next := first()
			if i < 0 {
				if k, _ := slices.BinarySearch(events, now+1); k < len(events) {
					next = min(next, events[k]-now)
				}
				time.Sleep(max(next, 1))
				continue
			}
			for _, l := range options[option].Limits {
				n := s.requests[i].permits
				if l.Permits > 0 {
					n = l.Permits
				}
				r, err := l.By.ReserveWithin(context.Background(), n, 0)
				require.NoError(t, err)
				if used := s.requests[i].settles; used > 0 {
					r.Settle(used)
				}
			}
			waiting = slices.DeleteFunc(waiting, func(other int) bool { return other == i })
			went[i], done[i], left = now, true, left-1
		}
	})
	return went
}

// The queue lets requests go when the model does.
func TestAgainstTheModel(t *testing.T) {
	for seed := range runs(300) {
		s := newScenario(rand.New(rand.NewPCG(seed, 1)))
		got, want := s.play(t), s.model(t)
		for i := range want {
			if (got[i] < 0) != (want[i] < 0) || (got[i]-want[i]).Abs() > time.Microsecond {
				require.Equal(t, fmt.Sprint(want), fmt.Sprint(got), "seed %d: %v %+v", seed, s.of, s.requests)
			}
		}
	}
}
