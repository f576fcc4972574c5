package reserve_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/internal/judge/model"
	"github.com/nextfree/pace/internal/watchdog"
	"github.com/nextfree/pace/reserve"
)

// slot is the interval between two permits, a power of two: so no time is rounded.
const slot = time.Duration(1 << 27)

// A call is one that a goroutine makes beside others, and what it returned.
type call struct {
	name string
	n    int           // permits: how many, or what a settlement says
	held int           // the number of the reservation, which its caller gave it
	d    time.Duration // the longest wait, or by how much the clock moves

	ok bool
	at time.Duration // when a reservation is ready, since the begin; or the wait that was refused
}

func (c call) String() string {
	return fmt.Sprintf("%s(n %d, #%d, %v): %v %v", c.name, c.n, c.held, c.d, c.ok, c.at)
}

// A sequence is the model, after some calls in some order.
type sequence struct {
	*model.Limiter
	now, until time.Duration // until: the end of the latest pause
	ids        map[int]int   // the model's, of reservations
	settled    map[int]bool  // by its ids
	changes    string        // the calls that have changed something: where they are the same, the model is
}

// then returns the sequence after one call more, and whether that could have returned what it did.
func (s *sequence) then(c call) (possible bool, after *sequence) {
	next := *s
	after = &next
	after.Limiter = s.Clone()
	possible, changes := true, true
	switch c.name {
	case "TryAcquire":
		_, ok := after.TryAcquire(c.n)
		possible, changes = ok == c.ok, ok
	case "ReserveWithin":
		within := math.Inf(1)
		if c.d < reserve.Forever {
			within = float64(c.d)
		}
		id, wait, ok := after.Reserve(c.n, within)
		possible, changes = ok == c.ok && (ok || time.Duration(wait) == c.at), ok
		after.ids = maps.Clone(s.ids)
		after.ids[c.held] = id
	case "Settle":
		id, reserved := s.ids[c.held]
		possible, changes = reserved, !s.settled[id]
		after.Settle(id, c.n)
		after.settled = maps.Clone(s.settled)
		after.settled[id] = true
	case "At":
		changes = false
		switch at, promised := s.Times()[s.ids[c.held]]; {
		case !promised: // it was cancelled, and keeps the time that was told last
		case at > float64(s.now):
			possible = time.Duration(at) == c.at
		default:
			possible = c.at <= s.now
		}
	case "Advance":
		after.Advance(float64(c.d))
		after.now += c.d
	case "PauseUntil":
		changes = c.d > max(s.now, s.until)
		after.PauseUntil(float64(c.d))
		after.until = max(s.until, c.d)
	case "Resume":
		changes = s.until > s.now
		after.Resume()
		after.until = min(s.until, s.now)
	}
	if changes {
		after.changes += c.String()
	}
	return possible, after
}

// A record is what goroutines that call at the same time write down.
type record struct {
	*limitertest.Bench
	moment atomic.Int64 // of the record, not of the limiter
	named  atomic.Int64
	mu     sync.Mutex
	calls  []porcupine.Operation
	held   []holding
}

type holding struct {
	name int
	*reserve.Reservation
}

// note makes a call, and writes down what it returned, and between which moments.
func (r *record) note(client int, c call, do func(c *call)) call {
	begin := r.moment.Add(1)
	do(&c)
	end := r.moment.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, porcupine.Operation{ClientId: client, Input: c, Call: begin, Return: end})
	return c
}

// any returns a reservation of any goroutine's.
func (r *record) any(random *rand.Rand) holding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held[random.IntN(len(r.held))]
}

func (r *record) reserveWithin(client, n int, within time.Duration) {
	h := holding{name: int(r.named.Add(1))}
	c := r.note(client, call{name: "ReserveWithin", n: n, d: within, held: h.name}, func(c *call) {
		reservation, err := r.ReserveWithin(ctx, c.n, c.d)
		var refused *reserve.WaitError
		if c.ok = err == nil; errors.As(err, &refused) {
			c.at = refused.Wait
		}
		h.Reservation = &reservation
	})
	if c.ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.held = append(r.held, h)
	}
}

func (r *record) advance(client int, random *rand.Rand) {
	d := time.Duration(1+random.IntN(4)) * slot / 2
	r.note(client, call{name: "Advance", d: d}, func(c *call) { r.Advance(c.d) })
}

// overlaps counts the pairs of calls that were made at the same time.
func (r *record) overlaps() (n int) {
	for i, a := range r.calls {
		for _, b := range r.calls[:i] {
			if a.Call < b.Return && b.Call < a.Return {
				n++
			}
		}
	}
	return n
}

// client makes random calls. While the clock moves no client settles or pauses. A caller that has read the clock and
// then waits for the lock does that as of its reading, and others may have been refused without the lock after that.
func (r *record) client(client, calls int, moving bool, random *rand.Rand) {
	for range calls {
		n := 1 + random.IntN(4)
		op := random.IntN(13)
		if moving && (op >= 7 && op <= 9 || op == 12) || !moving && op == 11 {
			op = random.IntN(7)
		}
		switch op {
		case 0, 1, 2, 3:
			r.note(client, call{name: "TryAcquire", n: n}, func(c *call) { c.ok = r.TryAcquire(c.n) })
		case 4, 5, 6:
			r.reserveWithin(client, n, []time.Duration{0, slot, 5 * slot, reserve.Forever}[random.IntN(4)])
		case 7, 8, 9:
			h := r.any(random)
			r.note(client, call{name: "Settle", held: h.name, n: random.IntN(n)}, func(c *call) { h.Settle(c.n) })
		case 10:
			h := r.any(random)
			r.note(client, call{name: "At", held: h.name}, func(c *call) { c.at = h.At().Sub(r.Begin) })
		case 11:
			r.advance(client, random)
		case 12:
			if random.IntN(2) == 0 {
				r.note(client, call{name: "Resume"}, func(*call) { r.Resume() })
			} else {
				d := r.Since(r.Begin) + time.Duration(random.IntN(4))*slot/4
				r.note(client, call{name: "PauseUntil", d: d}, func(c *call) { r.PauseUntil(r.Begin.Add(c.d)) })
			}
		}
	}
}

// A yieldingClock lets others run after it was read, so that the limiter gets a reading that may be old.
type yieldingClock struct{ *clockwork.FakeClock }

func (c yieldingClock) Since(t time.Time) time.Duration {
	d := c.FakeClock.Since(t)
	for range rand.IntN(4) {
		runtime.Gosched()
	}
	return d
}

// What goroutines see that ask, settle, pause and look at the same time is what they would see if all
// calls were made one after the other, in some order that fits their times, of the model.
func TestLinearizable(t *testing.T) {
	watchdog.Start(t)
	const rate = 1e9 / float64(slot)
	for name, k := range map[string]struct {
		model   model.Config
		options []reserve.Option
	}{
		"paid later": {
			model.Config{Rate: rate, Capacity: model.Fixed(4), Stored: 2},
			[]reserve.Option{pace.WithCapacity(4), reserve.WithStored(2)},
		},
		"nothing saved up": {
			model.Config{Rate: rate, Capacity: model.Fixed(0)},
			[]reserve.Option{pace.WithCapacity(0)},
		},
		"token bucket": {
			model.Config{Rate: rate, Capacity: model.Fixed(4), Stored: 4, Upfront: true},
			[]reserve.Option{pace.WithCapacity(4), reserve.WithStored(4), reserve.PayUpfront()},
		},
	} {
		t.Run(name, func(t *testing.T) {
			histories := 150
			if testing.Short() {
				histories = 20
			}
			overlaps := 0
			for seed := range histories {
				clock := yieldingClock{clockwork.NewFakeClock()}
				l, err := pace.NewBursty(rate, append(k.options, reserve.WithClock(clock))...)
				require.NoError(t, err)
				r := &record{Bench: &limitertest.Bench{T: t, FakeClock: clock.FakeClock, Limiter: l, Begin: clock.Now()}}
				r.reserveWithin(0, 3, reserve.Forever)
				for round := range 3 {
					var all sync.WaitGroup
					for client := range 3 {
						random := rand.New(rand.NewPCG(uint64(3*seed+round), uint64(client)))
						all.Go(func() { r.client(client, 4, seed%2 == 0, random) })
					}
					all.Wait()
					r.advance(0, rand.New(rand.NewPCG(uint64(seed), uint64(round))))
				}
				overlaps += r.overlaps()
				result := porcupine.CheckOperationsTimeout(specification(k.model), r.calls, time.Minute)
				if result != porcupine.Ok {
					slices.SortFunc(r.calls, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
					for _, c := range r.calls {
						t.Logf("%d to %d, client %d: %v", c.Call, c.Return, c.ClientId, c.Input)
					}
				}
				require.Equal(t, porcupine.Ok, result, "history %d", seed)
			}
			t.Logf("%d pairs of calls at the same time, in %d histories", overlaps, histories)
			require.Positive(t, overlaps)
		})
	}
}

func specification(config model.Config) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return &sequence{Limiter: model.New(config), ids: map[int]int{}, settled: map[int]bool{}} },
		Step: func(state, input, _ any) (bool, any) {
			return state.(*sequence).then(input.(call))
		},
		Equal: func(a, b any) bool { return a.(*sequence).changes == b.(*sequence).changes },
	}
}
