package fair

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

var (
	ctx = context.Background()
)

// runs returns how many random runs to make: PACE_RUNS says so, or else some.
func runs(t *testing.T, some int) int {
	if n, err := strconv.Atoi(os.Getenv("PACE_RUNS")); err == nil {
		return n
	}
	if testing.Short() {
		return some / 10
	}
	return some
}

// A pair is a queue and its model, on one clock.
type pair struct {
	t     *testing.T
	clock *handClock
	by    *reserve.Limiter
	queue *Queue
	mu    sync.Mutex // guards went: a step may be another goroutine's
	went  []*queue.Place
	model *model

	all    []*both
	byReal map[*queue.Place]*both
	open   []*both // that wait, or were granted and are not settled
	seed   uint64
	trace  []string

	stores  bool // the limit saves permits
	upfront bool // and a request pays with those
	late    bool // by a slot at most; then the two are not comparable any more
}

type both struct {
	place   *queue.Place
	request *request
	r       reserve.Reservation
}

func policies(clock *handClock) []*reserve.Policy {
	at := reserve.WithClock(clock)
	return []*reserve.Policy{
		reserve.Must(pace.Bursty(8, pace.WithBurst(0), at)),
		reserve.Must(pace.Bursty(8, at)),
		reserve.Must(pace.TokenBucket(8, 16, at)),
		reserve.Must(window.Policy(16, 2*time.Second, at)),
	}
}

func newPair(t *testing.T, seed uint64, random *rand.Rand) *pair {
	clock := newHandClock()
	kind := random.IntN(4)
	policy := policies(clock)[kind]
	p := &pair{t: t, clock: clock, by: policy.Limiter(), byReal: map[*queue.Place]*both{}, seed: seed, stores: kind >= 1, upfront: kind == 2}
	var classes []Class
	var limits []*reserve.Limiter
	weights := []float64{0, 0.5, 1, 2, 4}
	for i := range 1 + random.IntN(4) {
		c := Class{Name: fmt.Sprint(i), Priority: random.IntN(3), Weight: weights[random.IntN(5)]}
		if random.IntN(3) == 0 {
			c.MaxAge = time.Duration(random.IntN(3000)) * time.Millisecond
		}
		limits = append(limits, nil)
		if kind < 2 && random.IntN(4) == 0 { // elsewhere a smaller request may be ready earlier, and which limit is last changes
			own := reserve.Must(pace.Bursty(1+7*random.Float64(), pace.WithBurst(0), reserve.WithClock(clock)))
			c.Limit, limits[i] = own.Limiter(), own.Limiter()
		}
		classes = append(classes, c)
	}
	p.queue = reserve.Must(New(p.by, classes, WithTenants(func(tenant string) float64 {
		w, _ := strconv.Atoi(tenant)
		return weights[1+w%4]
	}), WithClock(clock)))
	set := queue.Settings{Clock: clock, Granted: func(place *queue.Place, _ int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.went = append(p.went, place)
	}}
	for _, c := range classes {
		set.Classes = append(set.Classes, queue.Class(c))
	}
	p.queue.queue = queue.New(set, p.queue.asks...)
	p.model = &model{classes: classes, by: policy.Limiter(), limits: limits, clock: clock, begin: clock.Now()}
	return p
}

func (p *pair) note(format string, args ...any) {
	p.trace = append(p.trace, fmt.Sprint(p.model.now(), " ")+fmt.Sprintf(format, args...))
}

// gone returns which requests went since the last call.
func (p *pair) gone() (ids []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.went {
		ids = append(ids, p.byReal[e].request.id)
	}
	p.went = nil
	return ids
}

// check has both do what there is to do now, and compares which were granted since the last check. Limiters round to
// nanoseconds, so one may be a few later than the other.
func (p *pair) check() {
	var got, want []int
	for range 4 {
		p.queue.queue.Look()
		for _, r := range p.model.step() {
			want = append(want, r.id)
		}
		got = append(got, p.gone()...)
		if slices.Equal(got, want) {
			break
		}
		p.clock.moveTo(p.clock.Now().Add(time.Nanosecond))
	}
	if len(want)+len(got) > 0 {
		p.note("went %v, model %v", got, want)
	}
	if p.upfront && len(got) < len(want) { // after a refund a bucket that is paid upfront may be late, by a slot at most
		p.late = true
		for step := 0; step < 1000 && len(got) < len(want); step++ {
			p.clock.moveTo(p.clock.Now().Add(time.Millisecond))
			p.queue.queue.Look()
			got = append(got, p.gone()...)
		}
		got = got[:min(len(got), len(want))]
	}
	require.Equal(p.t, want, got, "seed %d: %v", p.seed, p.trace)
}

// ask has both take a new request.
func (p *pair) ask(random *rand.Rand) {
	class := random.IntN(len(p.model.classes))
	tenant := random.IntN(4)
	if random.IntN(2) == 0 {
		tenant = 0
	}
	name := strconv.Itoa(tenant)
	r := &request{
		id: len(p.all), class: class, permits: 1 + random.IntN(8), tenant: name, weight: []float64{0.5, 1, 2, 4}[tenant%4], asked: p.model.now(),
	}
	p.note("%d asks for %d, class %d, tenant %s", r.id, r.permits, class, name)
	b := &both{request: r}
	p.all = append(p.all, b)
	p.model.log = append(p.model.log, event{asks, r.asked, r, 0})
	p.model.waiting = append(p.model.waiting, r)

	e, err := p.queue.reserve(ctx, strconv.Itoa(class), name, r.permits, reserve.Forever)
	require.NoError(p.t, err)
	b.place, p.byReal[e] = e, b
	b.r = e.Reservation()
	p.open = append(p.open, b)
	p.check()
}

// settle has one request, waiting or gone, come to another number of permits.
func (p *pair) settle(random *rand.Rand) {
	if len(p.open) == 0 {
		return
	}
	i := random.IntN(len(p.open))
	b := p.open[i]
	p.open[i] = p.open[len(p.open)-1]
	p.open = p.open[:len(p.open)-1]
	r := b.request
	if r.gone && p.model.limits[r.class] != nil {
		return // two limits take it back at times that differ by a nanosecond
	}
	actual := 0
	if random.IntN(2) == 0 {
		actual = random.IntN(r.permits + 3)
	}
	if len(p.model.waiting) > 0 { // what comes on top is charged behind the one that is bound
		actual = min(actual, r.permits)
	}
	p.note("%d settles at %d of %d", r.id, actual, r.permits)
	m := p.model
	switch {
	case r.gone:
		if actual != r.permits {
			m.log = append(m.log, event{settles, m.now(), r, actual - r.permits})
		}
		r.r.Settle(actual)
		r.own.Settle(actual)
	case actual == 0:
		m.log = append(m.log, event{leaves, m.now(), r, 0})
		for j, other := range m.waiting {
			if other == r {
				m.waiting = append(m.waiting[:j:j], m.waiting[j+1:]...)
				break
			}
		}
	case actual <= r.permits:
		r.permits = actual
	default:
		p.open = append(p.open, b) // more, before it is granted, is charged at its grant: tested apart
		return
	}
	b.r.Settle(actual)
	p.check()
}

func (p *pair) change(random *rand.Rand) {
	both := func(f func(l *reserve.Limiter)) { f(p.by); f(p.model.by) }
	switch random.IntN(4) {
	case 0:
		until := p.clock.Now().Add(time.Duration(random.IntN(3000)) * time.Millisecond)
		p.note("pause")
		both(func(l *reserve.Limiter) { l.PauseUntil(until) })
	case 1:
		p.note("resume")
		both((*reserve.Limiter).Resume)
	case 2:
		if len(p.model.waiting) > 0 {
			return // the cost of the one that is bound stays what it was at the rate of that time
		}
		rate := []float64{4, 8, 16}[random.IntN(3)]
		p.note("rate %v", rate)
		both(func(l *reserve.Limiter) { require.NoError(p.t, l.SetRate(rate)) })
	case 3:
		if p.stores && len(p.model.waiting) > 0 {
			return // what the one that is bound gets from the store keeps its price
		}
		rate := []float64{4, 8, 16}[random.IntN(3)]
		p.note("retime %v", rate)
		both(func(l *reserve.Limiter) { require.NoError(p.t, l.Retime(rate)) })
	}
}

// The queue lets requests go in the order of the model, and at its times: whatever arrives, leaves, settles, pauses
// and changes meanwhile.
func TestAgainstTheModel(t *testing.T) {
	late := 0
	n := runs(t, 600)
	for seed := range uint64(n) {
		random := rand.New(rand.NewPCG(seed, 1))
		p := newPair(t, seed, random)
		left := 5 + random.IntN(40)
		event := p.clock.Now()
		for !p.late && (left > 0 || len(p.model.waiting) > 0) {
			at := event
			if left == 0 {
				at = time.Unix(math.MaxInt32, 0)
			}
			if next := p.clock.next(); !next.IsZero() && next.Before(at) {
				at = next
			}
			if next := p.model.next(); !next.IsZero() && next.Before(at) {
				at = next
			}
			if at.Before(p.clock.Now()) {
				at = p.clock.Now()
			}
			if event.Before(at) {
				event = at
			}
			p.clock.moveTo(at)
			p.check()
			if left == 0 || at.Before(event) {
				continue
			}
			left--
			event = event.Add(time.Duration(random.IntN(1000)) * time.Millisecond)
			if random.IntN(3) == 0 {
				event = at
			}
			switch random.IntN(8) {
			case 0, 1:
				p.settle(random)
			case 2:
				p.change(random)
				p.check()
			default:
				p.ask(random)
			}
		}
		if p.late {
			late++
			continue
		}
		require.Zero(t, p.queue.queue.Waiting(), "seed %d", seed)
	}
	t.Log(n, "runs, of which a request was late by a slot in", late)
	require.LessOrEqual(t, late, n/2000+1)
}
