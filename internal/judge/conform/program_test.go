package conform

import (
	"time"

	"github.com/nextfree/pace/reserve"
)

// open lists the tickets that can be settled.
func (j *judge) open() (all []int) {
	for i, t := range j.tickets {
		if !t.settled {
			all = append(all, i)
		}
	}
	return all
}

// What a program of random operations may contain, beside asking and time.
type features int

const (
	returns features = 1 << iota // cancelling, and settling at less
	charges                      // settling at more
	undoing                      // cancelling the newest, while it waits
	pauses
	rates
	crowded // a request waits at each change of the rate
)

// A program does random operations to both sides of a judge.
type program struct {
	*judge
	with features
	unit time.Duration // a sixteenth of the time of a permit
}

// operations are what the first byte of an operation chooses: what is here twice is twice as likely.
var operations = [...]func(p *program, arg int){
	0: (*program).reserveSome, 1: (*program).reserveSome, 2: (*program).reserveSome, 3: (*program).reserveSome,
	4: (*program).reserveMany,
	5: (*program).reserveSoon,
	6: (*program).try,
	7: (*program).cancel, 8: (*program).cancel, 9: (*program).cancel,
	10: (*program).settleLess, 11: (*program).settleLess,
	12: (*program).settleMore,
	13: (*program).pauseOrResume,
	14: (*program).changeRate,
	15: (*program).advanceSome, 16: (*program).advanceSome,
	17: (*program).advanceLong,
	18: (*program).advanceTo, 19: (*program).advanceTo,
}

// run decodes a program, two bytes an operation, and does it to both.
func (j *judge) run(bytes []byte, with features) {
	p := &program{judge: j, with: with, unit: time.Duration(j.kind.interval()*float64(j.kind.unit)/16) + 1}
	if j.exact {
		p.unit--
	}
	for len(bytes) >= 2 && len(j.history) < 150 && !j.over() {
		operations[int(bytes[0])%len(operations)](p, int(bytes[1]))
		bytes = bytes[2:]
		j.look()
	}
	j.invariant()
}

func (p *program) reserveSome(arg int) { p.reserve((1+arg%8)*p.kind.unit, reserve.Forever) }
func (p *program) reserveMany(arg int) { p.reserve((1+arg%40)*p.kind.unit, reserve.Forever) }
func (p *program) reserveSoon(arg int) {
	p.reserve((1+arg%4)*p.kind.unit, time.Duration(arg/4)*p.unit)
}

func (p *program) try(arg int) { p.tryAcquire((1 + arg%4) * p.kind.unit) }

// latest returns one of the latest tickets that can be settled.
func (p *program) latest(arg int) (i int, ok bool) {
	open := p.open()
	if len(open) == 0 {
		return 0, false
	}
	return open[len(open)-1-arg>>4%len(open)], true
}

func (p *program) cancel(arg int) {
	if p.with&undoing != 0 {
		p.undoNewest()
	}
	if open := p.open(); len(open) > 0 && p.with&returns != 0 {
		p.settle(open[arg%len(open)], 0)
	}
}

// undoNewest cancels the newest reservation that was not cancelled, if it waits. Paid upfront it must not have
// collected anything yet: other processes may have been told that there is no room for that.
func (p *program) undoNewest() {
	for i := len(p.tickets) - 1; i >= 0; i-- {
		t := p.tickets[i]
		if t.permits == 0 {
			continue
		}
		begins := t.at
		if p.kind.upfront {
			most := p.kind.interval() // that a permit costs
			if w := p.kind.warm; w != nil {
				most *= w.ColdFactor
			}
			begins -= time.Duration(float64(t.permits) * most)
		}
		if begins > p.now {
			p.settle(i, 0)
		}
		return
	}
}

func (p *program) settleLess(arg int) {
	if i, ok := p.latest(arg); ok && p.with&returns != 0 {
		p.settle(i, max(0, p.tickets[i].permits-(arg&15)*p.kind.unit))
	}
}

func (p *program) settleMore(arg int) {
	if len(p.tickets) > 0 && arg == 0 && p.with&returns != 0 {
		p.settle(0, 0) // nothing, if it is settled
	} else if i, ok := p.latest(arg); ok && p.with&charges != 0 {
		p.settle(i, p.tickets[i].permits+(arg&15)*p.kind.unit)
	}
}

func (p *program) pauseOrResume(arg int) {
	switch {
	case p.with&pauses == 0:
	case arg%4 == 0:
		p.resume()
	default:
		p.pause(time.Duration(arg-32) * p.unit)
	}
}

func (p *program) changeRate(arg int) {
	rate := p.kind.rate * []float64{0.5, 1, 2}[arg%3]
	for i := 0; i < 3 && p.with&crowded != 0 && p.model.Quiet(); i++ {
		p.reserve(7*(i+1)*p.kind.unit, reserve.Forever)
	}
	switch {
	case p.with&rates == 0:
	case arg&64 != 0:
		p.retime(rate)
	default:
		p.setRate(rate)
	}
}

func (p *program) advanceSome(arg int) { p.advance(time.Duration(arg%32) * p.unit) }
func (p *program) advanceLong(arg int) { p.advance(time.Duration(arg) * 2 * p.unit) }

// advanceTo advances to the moment that a request is granted.
func (p *program) advanceTo(arg int) {
	if len(p.tickets) > 0 {
		if d := p.tickets[arg%len(p.tickets)].at - p.now; d > 0 && d < time.Hour {
			p.advance(d)
		}
	}
}
