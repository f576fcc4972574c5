package conform

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// A player plays a program on the limiter of an envelope, in a bubble.
type player struct {
	*Envelope
	t       *testing.T
	limiter Subject
	knobs   tunable       // nil: the limiter has none, or none that the envelope can follow
	unit    time.Duration // a sixteenth of the time of a permit

	unlimited, exhausted *reserve.Limiter // others, to be asked together with it
	waiting              sync.WaitGroup
}

func newPlayer(t *testing.T, e *Envelope) *player {
	v := e.Variant
	e.begin = time.Now()
	e.rates = []change{{rate: v.Rate}}
	p := &player{
		Envelope: e, t: t, limiter: v.New(), unit: time.Duration(1e9 / v.Rate / 16),
		unlimited: reserve.Must(pace.NewBursty(math.Inf(1))),
		exhausted: reserve.Must(pace.NewBursty(1e-3, pace.WithBurst(0))),
	}
	p.exhausted.TryAcquire(1)
	if !v.Fixed && v.Per == 0 {
		p.knobs, _ = p.limiter.(tunable)
	}
	return p
}

// actions are what the first byte of an operation chooses: what is here twice is twice as likely.
var actions = [...]func(p *player, arg int){
	0: (*player).reserve, 1: (*player).reserve, 2: (*player).reserve,
	3: (*player).reserveMany,
	4: (*player).reserveSoon,
	5: (*player).reserveTogether,
	6: (*player).reserveInVain,
	7: (*player).try, 8: (*player).try,
	9: (*player).cancel, 10: (*player).cancel, 11: (*player).cancel,
	12: (*player).settleLate,
	13: (*player).changeRate, 14: (*player).changeRate,
	15: (*player).pause,
	16: (*player).sleep, 17: (*player).sleep,
	18: (*player).sleepLong,
	19: (*player).sleepUntil,
}

// play does a program, two bytes an operation, and waits until all requests are granted. The last byte chooses what a
// store in time holds.
func (p *player) play(program []byte) {
	p.inPermits = p.Variant.Burst == 0
	if p.knobs != nil && !p.inPermits && len(program) > 0 && program[len(program)-1]&1 == 0 {
		p.inPermits = true
		p.changeRate(2<<6 | 2)
		p.changeRate(2<<6 | 1)
	}
	for len(program) >= 2 && len(p.History) < 100 {
		actions[int(program[0])%len(actions)](p, int(program[1]))
		program = program[2:]
		synctest.Wait()
	}
	p.waiting.Wait()
}

func (p *player) reserve(arg int)     { p.reserveFrom(p.limiter, 1+arg%8, reserve.Forever) }
func (p *player) reserveMany(arg int) { p.reserveFrom(p.limiter, 1+arg%16, reserve.Forever) }
func (p *player) reserveSoon(arg int) {
	p.reserveFrom(p.limiter, 1+arg%4, time.Duration(arg/4)*p.unit)
}

func (p *player) reserveTogether(arg int) {
	p.reserveFrom(reserve.All(p.limiter, p.unlimited), 1+arg%4, reserve.Forever)
}

// reserveInVain asks together with a limiter that refuses: nothing is taken.
func (p *player) reserveInVain(arg int) {
	p.reserveFrom(reserve.All(p.limiter, p.exhausted), 1+arg%4, time.Duration(arg)*p.unit)
}

// grant returns a grant of n permits, at today's rate.
func (p *player) grant(n int) *grant {
	g := &grant{permits: n, reserved: n, interval: 1 / p.rate(), least: 1 / p.rate()}
	p.granted = append(p.granted, g)
	return g
}

func (p *player) reserveFrom(by reserve.Reserver, n int, maxWait time.Duration) {
	r, err := by.ReserveWithin(p.t.Context(), n, maxWait)
	if err != nil {
		p.note("reserve %d within %v: %v", n, maxWait, err)
		return
	}
	p.note("#%d reserve %d: at %v", len(p.granted), n, r.At().Sub(p.begin))
	g := p.grant(n)
	g.r = &r
	p.waiting.Go(func() {
		if g.r.Wait(context.Background()) == nil {
			p.mu.Lock()
			g.went, g.at, g.after = true, p.now(), int(p.noted.Load())
			p.mu.Unlock()
		}
	})
}

func (p *player) try(arg int) {
	if n := 1 + arg%4; p.limiter.TryAcquire(n) {
		p.note("#%d tryAcquire %d", len(p.granted), n)
		g := p.grant(n)
		g.at, g.after, g.went, g.settled = p.now(), len(p.History), true, true
	}
}

// open lists the reservations that can be settled.
func (p *player) open() (all []int) {
	for i, g := range p.granted {
		if g.r != nil && !g.settled {
			all = append(all, i)
		}
	}
	return all
}

func (p *player) settle(i, actual int) {
	g := p.granted[i]
	p.note("settle #%d of %d at %d", i, g.reserved, actual)
	g.settled = true
	g.permits = min(g.permits, actual)
	g.r.Settle(actual)
}

func (p *player) cancel(arg int) {
	if open := p.open(); len(open) > 0 {
		p.settle(open[arg%len(open)], 0)
	}
}

// settleLate settles one of the latest reservations.
func (p *player) settleLate(arg int) {
	if open := p.open(); len(open) > 0 {
		p.settle(open[len(open)-1-arg>>4%len(open)], arg&15)
	}
}

func (p *player) changeRate(arg int) {
	rate := p.Variant.Rate * []float64{0.5, 1, 2, 4, 0.2, 10, 1.2, 0.1}[arg%8]
	if p.knobs == nil || rate == p.rate() {
		return
	}
	var err error
	switch arg >> 6 {
	case 2:
		if !p.inPermits {
			return
		}
		p.keepsPermits = true
		p.retimed("Retime", rate)
		err = p.knobs.Retime(rate)
	case 3:
		p.rateSet("SetPolicy", rate)
		err = p.knobs.SetPolicy(p.Variant.Policy(rate))
	default:
		p.rateSet("SetRate", rate)
		err = p.knobs.SetRate(rate)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// rateSet notes a change that keeps promises: what is owed at a higher rate may still be given. With a capacity in
// permits, and after a Retime, it is a Retime.
func (p *player) rateSet(how string, rate float64) {
	if p.keepsPermits || p.Variant.KeepsPermits {
		p.retimed(how, rate)
		return
	}
	c := change{at: p.now(), rate: rate}
	if old := p.rate(); rate < old {
		owed := time.Until(p.knobs.NextFree())
		c.kept = max(0, owed.Seconds()) * (old - rate)
		c.expires = c.at + owed
	}
	p.note("%s %v", how, rate)
	p.rates = append(p.rates, c)
}

// retimed notes a change that scales promises: what is owed at an older rate takes so much longer, or shorter.
func (p *player) retimed(how string, rate float64) {
	now, old := p.now(), p.rate()
	for i, before := range p.rates {
		if before.kept > 0 && before.expires+p.paused(before.at, now) >= now {
			owed := max(0, float64(time.Until(p.knobs.NextFree())))
			p.rates[i].expires = now + time.Duration(owed*old/rate)
		}
	}
	for _, g := range p.granted {
		g.interval *= old / rate
		g.least = min(g.least, g.interval)
	}
	p.note("%s %v", how, rate)
	p.rates = append(p.rates, change{at: now, rate: rate})
}

func (p *player) pause(arg int) {
	switch {
	case p.knobs == nil:
	case arg%4 == 0:
		p.note("resume")
		p.knobs.Resume()
		for i := range p.pauses {
			p.pauses[i].to = min(p.pauses[i].to, p.now())
		}
	default:
		d := time.Duration(arg) * p.unit / 2
		p.note("pause for %v", d)
		p.knobs.PauseUntil(time.Now().Add(d))
		p.pauses = append(p.pauses, stretch{p.now(), p.now() + d})
	}
}

func (p *player) sleep(arg int)     { time.Sleep(time.Duration(arg%64) * p.unit) }
func (p *player) sleepLong(arg int) { time.Sleep(time.Duration(arg) * p.unit) }

// sleepUntil sleeps until a reservation is granted.
func (p *player) sleepUntil(arg int) {
	if len(p.granted) > 0 {
		if g := p.granted[arg%len(p.granted)]; g.r != nil {
			time.Sleep(min(g.r.Delay(), time.Hour))
		}
	}
}
