package pace_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/model"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/warmup"
)

// pair is a limiter and its model, side by side, with all that was ever reserved.
type pair struct {
	t        *testing.T
	config   config
	clock    *clockwork.FakeClock
	epoch    time.Time
	limiter  *reserve.Limiter
	model    *model.Limiter
	others   []*model.Limiter // that chose otherwise where the rules leave a choice, and still agree
	held     []*held
	nextID   int
	history  []string
	constant bool // the rate was never changed
	late     int  // permits given back after their time
}

// held is one reservation, or what a TryAcquire got.
type held struct {
	id      int
	r       *reserve.Reservation // nil for TryAcquire
	at      time.Time
	permits int // that were or may be used
	over    bool
}

// config is a kind of limiter that pair can make.
type config struct {
	name    string
	make    func(rate float64, opts ...reserve.Option) (*reserve.Limiter, error)
	curve   func(rate float64) model.Curve
	rate    float64
	stored  float64
	upfront bool
	// exact: all times and permits are sums of powers of two, so that no rounding is excused.
	exact bool
}

func (c config) warming() bool { return c.curve(1).Bend > 0 }

// sixteenth of an interval, of which all advances of an exact run are multiples.
const sixteenth = 1 << 23

// dyadic is a rate whose interval is a power of two: 7.45/s, and neighbours of it.
func dyadic(power int) float64 { return 1e9 / float64(int64(1)<<power) }

func newPair(t *testing.T, c config) *pair {
	clock := clockwork.NewFakeClockAt(time.Unix(1_700_000_000, 0))
	opts := []reserve.Option{reserve.WithClock(clock), reserve.WithStored(c.stored)}
	if c.upfront {
		opts = append(opts, reserve.PayUpfront())
	}
	limiter, err := c.make(c.rate, opts...)
	require.NoError(t, err)
	m := model.New(c.curve, c.rate, c.stored, c.upfront)
	p := &pair{t: t, config: c, clock: clock, epoch: clock.Now(), limiter: limiter, model: m, constant: true}
	if !c.exact {
		p.loosen()
	}
	return p
}

// loosen excuses rounding from now on.
func (p *pair) loosen() {
	p.config.exact = false
	p.each(func(m *model.Limiter) { m.Unsure = 50 })
}

func (p *pair) note(format string, args ...any) {
	p.history = append(p.history, fmt.Sprintf(format, args...))
}

func (p *pair) fail(format string, args ...any) {
	p.t.Helper()
	trace := fmt.Sprintf("%s rate %v stored %v upfront %v\n", p.config.name, p.config.rate, p.config.stored, p.config.upfront)
	for _, line := range p.history {
		trace += "  " + line + "\n"
	}
	p.t.Fatalf("%s%s", trace, fmt.Sprintf(format, args...))
}

// nanos is a time as the model counts.
func (p *pair) nanos(t time.Time) float64 { return float64(t.Sub(p.epoch)) }

// slack is how far two times may be apart: the limiter's are whole nanoseconds, rounded
// down, and in a run that is not exact each of many sums is rounded.
func (p *pair) sameTime(got time.Time, want float64) bool {
	if p.config.exact {
		return p.nanos(got) == math.Floor(want)
	}
	return math.Abs(p.nanos(got)-want) <= 300
}

func (p *pair) samePermits(got, want float64) bool {
	tolerance := 1e-9
	if !p.config.exact {
		tolerance = 1e-6 + 500/p.model.Interval()
	}
	return math.Abs(got-want) <= tolerance
}

func (p *pair) advance(d time.Duration) {
	p.note("advance %v", d)
	p.clock.Advance(d)
	p.each(func(m *model.Limiter) { m.Advance(float64(d)) })
}

func (p *pair) id() int {
	p.nextID += 10
	return p.nextID
}

func (p *pair) reserve(n int, maxWait time.Duration) {
	r, err := p.limiter.ReserveWithin(context.Background(), n, maxWait)
	ok := err == nil
	var wait time.Duration
	if ok {
		wait = r.Delay()
	} else {
		var refused *reserve.WaitError
		if !errors.As(err, &refused) {
			p.fail("reserve %d: %v", n, err)
		}
		wait = refused.Wait
	}
	id := p.id()
	var wantWait float64
	var wantOk bool
	var agree []*model.Limiter
	p.each(func(m *model.Limiter) {
		wantWait, wantOk = m.Reserve(id, n, float64(maxWait), float64(wait), ok)
		if ok == wantOk && p.sameTime(p.clock.Now().Add(wait), m.Now()+wantWait) {
			agree = append(agree, m)
		}
	})
	p.note("[%v] #%d reserve %d within %v: wait %v, %v (model %v, %v)", p.clock.Since(p.epoch), len(p.held), n, maxWait, wait, ok, time.Duration(wantWait), wantOk)
	if len(agree) > 0 {
		p.model, p.others = agree[len(agree)-1], agree[:len(agree)-1]
	} else {
		p.fail("reserve: got %v %v, the model %v %v", wait, ok, time.Duration(wantWait), wantOk)
	}
	if ok {
		p.held = append(p.held, &held{id: id, r: &r, at: r.At(), permits: n})
	}
}

func (p *pair) tryAcquire(n int) {
	ok := p.limiter.TryAcquire(n)
	id := p.id()
	var wantOk bool
	var agree []*model.Limiter
	p.each(func(m *model.Limiter) {
		if _, wantOk = m.Reserve(id, n, 0, 0, ok); ok == wantOk {
			agree = append(agree, m)
		}
	})
	p.note("[%v] #%d tryAcquire %d: %v (model %v)", p.clock.Since(p.epoch), len(p.held), n, ok, wantOk)
	if len(agree) > 0 {
		p.model, p.others = agree[len(agree)-1], agree[:len(agree)-1]
	} else {
		p.fail("tryAcquire: got %v, the model %v", ok, wantOk)
	}
	if ok {
		p.held = append(p.held, &held{id: id, at: p.clock.Now(), permits: n, over: true})
	}
}

func (p *pair) settle(i, actual int) {
	h := p.held[i]
	if h.r == nil || actual > h.permits && p.model.Edgy(actual-h.permits) {
		return
	}
	if p.config.upfront && p.config.warming() && p.model.Begun(h.id) {
		return // how much of a passed stretch spills depends on when that is counted
	}
	p.note("[%v] settle #%d at %d of %d", p.clock.Since(p.epoch), i, actual, h.permits)
	if actual == 0 {
		h.r.Cancel()
	} else {
		h.r.Settle(actual)
	}
	fresh := p.id()
	var all []*model.Limiter
	for choice := model.Choice(0); choice < model.Choices; choice++ {
		for _, m := range append([]*model.Limiter{p.model}, p.others...) {
			m = m.Clone()
			m.Settle(h.id, actual, fresh, choice)
			all = append(all, m)
		}
	}
	p.model, p.others = all[0], all[1:]
	p.narrow()
	if !h.over {
		h.permits = max(0, min(h.permits, actual))
		if !h.at.After(p.clock.Now()) {
			p.late++
		}
	}
	h.over = true
}

func (p *pair) setRate(rate float64) {
	p.note("[%v] setRate %v", p.clock.Since(p.epoch), rate)
	require.NoError(p.t, p.limiter.SetRate(rate))
	p.each(func(m *model.Limiter) { m.SetRate(rate) })
	p.constant = false
	p.loosen() // the store scales by a quotient, which is rounded
}

func (p *pair) pause(d time.Duration) {
	p.note("[%v] pause for %v", p.clock.Since(p.epoch), d)
	until := p.clock.Now().Add(d)
	p.limiter.PauseUntil(until)
	p.each(func(m *model.Limiter) { m.PauseUntil(p.nanos(until)) })
	for _, h := range p.held {
		if h.r != nil && h.at.After(p.clock.Now()) {
			h.at = h.r.At()
		}
	}
}

// check compares all that can be asked, and what holds whatever the model says.
func (p *pair) check() {
	for i, h := range p.held {
		if h.r == nil {
			continue
		}
		if at := h.r.At(); !at.Equal(h.at) {
			p.fail("the time of #%d moved from %v to %v", i, h.at.Sub(p.epoch), at.Sub(p.epoch))
		}
		if h.permits > 0 && !p.sameTime(h.at, p.model.At(h.id)) {
			p.fail("#%d is at %v, the model has %v", i, h.at.Sub(p.epoch), time.Duration(p.model.At(h.id)))
		}
	}
	p.narrow()
	if difference := p.differs(p.model); difference != "" {
		p.fail("%s", difference)
	}
}

// narrow keeps only those models that agree with the limiter and differ from each other. If
// none does, the one that has to is the first.
func (p *pair) narrow() {
	seen := map[string]bool{}
	var agree []*model.Limiter
	for _, m := range append([]*model.Limiter{p.model}, p.others...) {
		if print := m.String(); !seen[print] && len(agree) < 8 && p.differs(m) == "" {
			seen[print] = true
			agree = append(agree, m)
		}
	}
	if len(agree) > 0 {
		p.model, p.others = agree[0], agree[1:]
	}
}

// each is for what happens to all models.
func (p *pair) each(do func(m *model.Limiter)) {
	for _, m := range p.others {
		do(m)
	}
	do(p.model)
}

// differs compares all that can be asked of the limiter itself.
func (p *pair) differs(m *model.Limiter) string {
	got := p.limiter.Stored()
	if want := m.Stored(got); !p.samePermits(got, want) {
		return fmt.Sprintf("stored: %.12g, the model has %.12g (and %.12g aside)", got, want, m.Aside())
	}
	free := p.limiter.NextFree()
	if free.Before(p.clock.Now()) {
		free = p.clock.Now()
	}
	if want := m.NextFree(p.nanos(free)); !p.sameTime(free, want) {
		return fmt.Sprintf("next free: %v, the model has %v", free.Sub(p.epoch), time.Duration(want))
	}
	return ""
}

// checkInvariant compares each two uses: between them lie no more permits than the store
// holds and the rate gives. The last one's own are excepted, which the next callers pay
// for; or, paid upfront, the first one's own, which it had paid for before. What a
// warming-up limiter stored is no cheaper than what it gives fresh.
func (p *pair) checkInvariant() {
	if !p.constant {
		return
	}
	curve := p.config.curve(p.config.rate)
	capacity := curve.Capacity
	if p.config.warming() {
		capacity = 0
	}
	var used []*held
	for _, h := range p.held {
		if h.permits > 0 {
			used = append(used, h)
		}
	}
	sort.SliceStable(used, func(i, j int) bool { return used[i].at.Before(used[j].at) })
	for i, first := range used {
		before, after := 0, 0 // permits between the two, with the first one's own, and with the last one's
		for j := i + 1; j < len(used); j++ {
			last := used[j]
			before += used[j-1].permits
			after += last.permits
			permits := before
			if p.config.upfront {
				permits = after
			}
			limit := capacity + float64(last.at.Sub(first.at)+100)/curve.Interval
			if float64(permits) > limit+1e-6 {
				p.fail("%d permits from %v to %v, where %.3f are allowed", permits, first.at.Sub(p.epoch), last.at.Sub(p.epoch), limit)
			}
		}
	}
}

// run decodes operations, two bytes each, and does them to both.
func (p *pair) run(program []byte) {
	unit := time.Duration(sixteenth)
	if !p.config.exact {
		unit = time.Duration(1e9/p.config.rate/16) + 1
	}
	for len(program) >= 2 && len(p.history) < 150 && p.late < 1000 {
		op, arg := program[0]%16, program[1]
		program = program[2:]
		switch op {
		case 0, 1, 2:
			p.reserve(1+int(arg%8), reserve.Forever)
		case 3:
			p.reserve(1+int(arg%64), reserve.Forever)
		case 4:
			p.reserve(1+int(arg%4), time.Duration(arg/4)*2*unit)
		case 5:
			p.tryAcquire(1 + int(arg%4))
		case 6, 7, 8:
			if len(p.held) > 0 {
				p.settle(int(arg)%len(p.held), 0)
			}
		case 9:
			if len(p.held) > 0 {
				i := len(p.held) - 1 - int(arg>>4)%len(p.held)
				p.settle(i, p.held[i].permits+int(arg&15)-8)
			}
		case 10:
			p.setRate(p.config.rate * math.Ldexp(1, int(arg%7)-3))
		case 11:
			p.pause(time.Duration(int(arg)-32) * unit)
		case 12, 13:
			p.advance(time.Duration(arg%32) * unit)
		case 14:
			p.advance(time.Duration(arg) * 4 * unit)
		case 15: // to the moment that one of them may go
			if len(p.held) > 0 {
				if d := p.held[int(arg)%len(p.held)].at.Sub(p.clock.Now()); d > 0 {
					if !p.config.exact {
						d += 200 // past what rounding leaves unsure
					}
					p.advance(d)
				}
			}
		}
		p.check()
	}
	p.checkInvariant()
}

func bursty(name string, curve func(float64) model.Curve, stored float64, options ...reserve.Option) config {
	return config{
		name: name, curve: curve, stored: stored,
		make: func(rate float64, opts ...reserve.Option) (*reserve.Limiter, error) {
			return pace.NewBursty(rate, append(opts, options...)...)
		},
	}
}

func warming(period time.Duration, coldFactor, stored float64) config {
	return config{
		name:  fmt.Sprintf("warmup of %v, cold factor %v", period, coldFactor),
		curve: model.WarmUp(float64(period), coldFactor), stored: stored,
		make: func(rate float64, opts ...reserve.Option) (*reserve.Limiter, error) {
			return warmup.New(rate, period, append(opts, warmup.WithColdFactor(coldFactor))...)
		},
	}
}

var burstyConfigs = []config{
	bursty("bursty", model.Bursty(1), 0),
	bursty("burst 0", model.Bursty(0), 0, pace.WithBurst(0)),
	bursty("capacity 10, full", model.Capacity(10), 10, pace.WithCapacity(10)),
	bursty("burst 4 s, half full", model.Bursty(4), 16, pace.WithBurst(4*time.Second)),
	bursty("capacity 1", model.Capacity(1), 0, pace.WithCapacity(1)),
	bursty("capacity 2.5", model.Capacity(2.5), 2.5, pace.WithCapacity(2.5)),
}

// With periods that are powers of two, and cold factors for which the slope is one.
var warmUpConfigs = []config{
	warming(1<<31, 3, math.Inf(1)),
	warming(1<<31, 3, 0),
	warming(1<<30, 1, math.Inf(1)),
	warming(1<<33, 7, math.Inf(1)),
	warming(1<<29, 15, 2),
	warming(1<<32, 1, 0),
}

// pick makes a pair of one of the configs: at a rate that is exact in the even ones.
func pick(t *testing.T, configs []config, upfront bool, which byte) *pair {
	c := configs[int(which>>1)%len(configs)]
	c.upfront = upfront
	c.exact = which&1 == 0
	c.rate = dyadic(27)
	if !c.exact {
		c.rate = []float64{10, 3, 7.7, 100, 2999, 1}[int(which>>1)/len(configs)%6]
	}
	return newPair(t, c)
}

// seeds are programs that were the shortest to show a fault, or to reach a rule.
func seeds(f *testing.F) {
	f.Helper()
	programs := [][]byte{
		{},
		{0, 0, 0, 0, 0, 0, 6, 1, 0, 0},       // into a slot in the middle
		{0, 0, 0, 0, 0, 0, 6, 2, 6, 1, 6, 0}, // newest first
		{0, 0, 0, 0, 0, 0, 6, 0, 6, 1, 6, 2}, // oldest first
		{0, 3, 0, 2, 0, 0, 12, 4, 6, 0, 6, 1, 14, 20},    // late
		{0, 7, 0, 3, 0, 1, 6, 1, 12, 31, 12, 31, 14, 60}, // passes unsold
		{0, 7, 0, 0, 6, 0, 11, 90, 0, 1, 12, 9, 6, 2, 15, 0, 6, 1},
		{0, 7, 0, 7, 0, 0, 10, 5, 6, 1, 0, 1, 10, 0, 12, 9, 6, 0, 14, 99},
		{3, 40, 0, 0, 9, 0, 9, 16, 0, 3, 14, 200, 9, 12, 0, 0},
		{14, 255, 0, 1, 0, 2, 0, 3, 0, 0, 6, 1, 6, 0, 6, 2, 12, 1, 5, 3},
	}
	for i, program := range programs {
		for which := range 72 {
			if which < 12 || which%len(programs) == i {
				f.Add(byte(which), program)
			}
		}
	}
	for seed := range 200 {
		random := rand.New(rand.NewPCG(1, uint64(seed)))
		program := make([]byte, 120)
		for i := range program {
			program[i] = byte(random.Uint32())
		}
		f.Add(byte(seed), program)
	}
}

func FuzzBursty(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, which byte, program []byte) {
		pick(t, burstyConfigs, false, which).run(program)
	})
}

func FuzzWarmUp(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, which byte, program []byte) {
		pick(t, warmUpConfigs, false, which).run(program)
	})
}

func FuzzUpfront(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, which byte, program []byte) {
		configs := append(append([]config(nil), burstyConfigs...), warmUpConfigs...)
		pick(t, configs, true, which).run(program)
	})
}

// Whoever is not yet due can be taken back, in any order: then the limiter is as one
// that has never seen them.
func FuzzUndo(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, which byte, program []byte) {
		configs := append(append([]config(nil), burstyConfigs...), warmUpConfigs...)
		p, twin := pick(t, configs, which&64 != 0, which), pick(t, configs, which&64 != 0, which)
		p.undo(twin, program)
	})
}

// undo needs no model: the twin is one.
func (p *pair) undo(twin *pair, program []byte) {
	program = program[:min(len(program), 300)]
	reserve := func(p *pair, n int) *held {
		r, err := p.limiter.Reserve(context.Background(), n)
		require.NoError(p.t, err)
		p.note("[%v] #%d reserve %d: %v", p.clock.Since(p.epoch), len(p.held), n, r.Delay())
		p.held = append(p.held, &held{id: len(p.held), r: &r, at: r.At(), permits: n})
		return p.held[len(p.held)-1]
	}
	half := len(program) / 4 * 2
	for _, b := range program[:half] { // what both see, first come first served
		for _, p := range []*pair{p, twin} {
			if b < 160 {
				reserve(p, 1+int(b%8))
			} else {
				p.advance(time.Duration(b%32) * sixteenth)
			}
		}
	}
	if d := p.limiter.NextFree().Sub(p.clock.Now()); p.config.upfront && d > 0 {
		p.advance(d + time.Microsecond) // for a stretch under way may be given back with a loss
		twin.advance(d + time.Microsecond)
	}
	reserve(p, 3) // goes, so that those behind it wait
	reserve(twin, 3)
	var pending []*held
	cancel := func(i int) {
		p.note("[%v] cancel #%d", p.clock.Since(p.epoch), pending[i].id)
		pending[i].r.Cancel()
		pending = slices.Delete(pending, i, i+1)
	}
	for _, b := range program[half:] {
		switch {
		case b < 128:
			h := reserve(p, 1+int(b%8))
			if pending = append(pending, h); !h.at.After(p.clock.Now()) {
				cancel(len(pending) - 1) // it may go, and is the newest
			}
		case len(pending) > 0:
			cancel(int(b) % len(pending))
		}
	}
	for len(pending) > 0 {
		cancel(len(program) * 7 % len(pending))
	}
	for range 3 {
		if got, want := p.limiter.Stored(), twin.limiter.Stored(); math.Abs(got-want) > 1e-6+2e-9*p.limiter.Rate() { // 2 ns' worth, for the carry
			p.fail("stored %v, the twin %v", got, want)
		}
		if got, want := p.limiter.NextFree(), twin.limiter.NextFree(); got.Sub(want).Abs() > 3 {
			p.fail("next free %v, the twin's %v", got.Sub(p.epoch), want.Sub(p.epoch))
		}
		for _, p := range []*pair{p, twin} {
			reserve(p, 2)
			p.advance(7 * sixteenth)
		}
	}
}

// All of two: the times are the later ones, and when one refuses, the other is exactly
// as it was.
func FuzzAll(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, which byte, program []byte) {
		configs := append(append([]config(nil), burstyConfigs...), warmUpConfigs...)
		first, second := pick(t, configs, which&64 != 0, which&^1), pick(t, configs, false, (which*7)&^1)
		second.clock = first.clock
		second.limiter = reserve.Must(second.config.make(second.config.rate,
			reserve.WithClock(first.clock), reserve.WithStored(second.config.stored)))
		both := reserve.All(first.limiter, second.limiter)
		for step := 0; len(program) >= 2 && step < 80; step++ {
			op, arg := program[0]%8, program[1]
			program = program[2:]
			switch op {
			case 0, 1: // one of them is kept busy
				p := []*pair{first, second}[arg&1]
				p.reserve(1+int(arg%5), reserve.Forever)
			case 2:
				p := []*pair{first, second}[arg&1]
				if len(p.held) > 0 {
					p.settle(int(arg)%len(p.held), 0)
				}
			case 3, 4, 5:
				n := 1 + int(arg%4)
				maxWait := time.Duration(arg) * sixteenth
				stored, free := [2]float64{first.limiter.Stored(), second.limiter.Stored()}, [2]time.Time{first.limiter.NextFree(), second.limiter.NextFree()}
				r, err := both.ReserveWithin(context.Background(), n, maxWait)
				first.note("all %d within %v: %v", n, maxWait, err)
				if err != nil {
					for i, p := range []*pair{first, second} {
						if got := p.limiter.Stored(); math.Abs(got-stored[i]) > 1e-9 {
							first.fail("refused, and limiter %d stores %v, no longer %v", i, got, stored[i])
						}
						if got := p.limiter.NextFree(); got.Sub(free[i]).Abs() > 1 && got.After(p.clock.Now()) {
							first.fail("refused, and limiter %d is free at %v, no longer %v", i, got.Sub(p.epoch), free[i].Sub(p.epoch))
						}
					}
					continue
				}
				var want time.Duration
				for _, p := range []*pair{first, second} {
					id := p.id()
					var wait float64
					p.each(func(m *model.Limiter) { wait, _ = m.Reserve(id, n, math.MaxInt64, float64(r.Delay()), true) })
					want = max(want, time.Duration(wait))
					p.held = append(p.held, &held{id: id, at: r.At(), permits: n, over: true})
				}
				if (r.Delay() - want).Abs() > 60 {
					first.fail("all wait for %v, the models for %v", r.Delay(), want)
				}
			case 6, 7:
				d := time.Duration(arg%32) * sixteenth
				first.advance(d)
				second.each(func(m *model.Limiter) { m.Advance(float64(d)) })
			}
			for _, p := range []*pair{first, second} {
				p.narrow()
				if difference := p.differs(p.model); difference != "" {
					p.history = append(p.history, first.history...)
					p.fail("%s", difference)
				}
			}
		}
	})
}
