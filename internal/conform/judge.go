package conform

import (
	"fmt"
	"math"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/model"
	"github.com/nextfree/pace/reserve"
)

// A judge does the same to a limiter and to the model, and compares after each operation all
// that can be asked: the times of everybody, NextFree, Stored, and what is refused.
//
// Whatever the limiter gives earlier, or more of, than the model is a fault. What it gives later is
// counted. From then on the two have different histories, so the queue is not looked at any further.
//
// The limiter counts in whole nanoseconds, the model in fractions. So, but for exact kinds, two times are
// the same if they are no further apart than slack; and before an operation is done it is tried
// on a copy of the model: where that had to decide by less than the slack, either outcome would be
// right, and another operation is done instead.
type judge struct {
	kind     kind
	subject  subject
	model    *model.Limiter
	exact    bool
	constant bool // the rate was never changed
	now      time.Duration
	tickets  []*ticket
	pauses   []stretch
	history  []string

	early string // how the limiter was earlier than the model, or broke a promise; empty if not
	late  []late // how it was later
}

// A ticket is one reservation, or what a TryAcquire got.
type ticket struct {
	subject, model int
	permits        int // that were or may be used
	tried          bool
	settled        bool
	at             time.Duration // when last asked
	gone           bool          // it was seen that it may go
}

type stretch struct{ from, to time.Duration }

// late is one thing that came later than it should.
type late struct {
	what string
	by   time.Duration
	slot bool
}

func newJudge(k kind, s subject) *judge {
	return &judge{kind: k, subject: s, model: k.model(), exact: k.exact(), constant: true}
}

// slack is a nanosecond for the rounding of the promise itself, and one for each operation: with
// each somebody may have gone, at a whole nanosecond where the model has a fraction.
func (j *judge) slack() time.Duration {
	if j.exact {
		return 0
	}
	slack := time.Duration(2 + len(j.history))
	if w := j.kind.warm; w != nil { // a nanosecond of idle time makes a permit dearer by so much
		slack *= time.Duration(2 + 2*w.ColdFactor)
	}
	return slack
}

func (j *judge) note(format string, args ...any) {
	j.history = append(j.history, fmt.Sprintf("[%v] ", j.now)+fmt.Sprintf(format, args...))
}

func (j *judge) trace() string {
	return j.kind.String() + "\n  " + strings.Join(j.history, "\n  ") + "\n"
}

func (j *judge) over() bool { return j.early != "" || len(j.late) > 0 }

// compare takes a time, or in its place a number of permits as a time, of the limiter's and the model's.
func (j *judge) compare(what string, got time.Duration, want float64, slot bool) {
	slack := float64(j.slack()) + math.Abs(want)*1e-14
	switch difference := float64(got) - want; {
	case difference < -slack-1 || j.exact && difference < 0:
		if j.early == "" {
			j.early = fmt.Sprintf("%s: %v, the model has %v", what, got, time.Duration(want))
		}
	case difference > slack:
		j.late = append(j.late, late{fmt.Sprintf("%s: %v, the model has %v", what, got, time.Duration(want)), time.Duration(difference), slot})
	}
}

// unsure says whether the model would decide by a hair.
func (j *judge) unsure(do func(m *model.Limiter)) bool {
	if j.exact {
		return false
	}
	m := j.model.Clone()
	m.Closest = math.Inf(1)
	do(m)
	return m.Closest <= float64(2*j.slack())
}

func (j *judge) advance(d time.Duration) {
	for tries := 0; j.unsure(func(m *model.Limiter) { m.Advance(float64(d)) }); tries++ {
		if d += 5*j.slack() + 13; tries == 100 {
			panic(j.trace() + "no time is sure")
		}
	}
	j.note("advance %v", d)
	j.now += d
	j.subject.advance(d)
	j.model.Advance(float64(d))
}

func (j *judge) reserve(n int, maxWait time.Duration) {
	within := float64(maxWait)
	if maxWait == reserve.Forever {
		within = math.Inf(1)
	}
	if j.unsure(func(m *model.Limiter) { m.Reserve(n, within) }) {
		return
	}
	id, wait, ok := j.subject.reserve(n, maxWait)
	want, wantWait, wantOk := j.model.Reserve(n, within)
	j.note("#%d reserve %d within %v: %v %v", len(j.tickets), n, maxWait, wait, ok)
	j.decided(fmt.Sprintf("reserve %d", n), ok, wantOk)
	j.compare(fmt.Sprintf("reserve %d waits", n), wait, wantWait, ok)
	if ok && wantOk {
		j.tickets = append(j.tickets, &ticket{subject: id, model: want, permits: n, at: j.subject.at(id)})
	}
}

func (j *judge) decided(what string, got, want bool) {
	switch {
	case got && !want && j.early == "":
		j.early = what + " was granted, the model refuses"
	case want && !got:
		j.late = append(j.late, late{what: what + " was refused, the model grants", slot: true})
	}
}

func (j *judge) tryAcquire(n int) {
	if j.unsure(func(m *model.Limiter) { m.TryAcquire(n) }) {
		return
	}
	got := j.subject.tryAcquire(n)
	id, want := j.model.TryAcquire(n)
	j.note("#%d tryAcquire %d: %v", len(j.tickets), n, got)
	j.decided(fmt.Sprintf("tryAcquire %d", n), got, want)
	if got && want {
		j.tickets = append(j.tickets, &ticket{model: id, permits: n, tried: true, settled: true, at: j.now, gone: true})
	}
}

func (j *judge) settle(i, actual int) {
	t := j.tickets[i]
	if t.tried || j.model.Unclear(t.model, actual) || j.unsure(func(m *model.Limiter) { m.Settle(t.model, actual) }) {
		return
	}
	j.note("settle #%d of %d at %d", i, t.permits, actual)
	j.subject.settle(t.subject, actual)
	j.model.Settle(t.model, actual)
	if !t.settled {
		t.permits = max(0, min(t.permits, actual))
	}
	t.settled = true
}

func (j *judge) pause(d time.Duration) {
	j.note("pause for %v", d)
	until := j.now + d
	j.subject.pause(until)
	j.model.PauseUntil(float64(until))
	if d > 0 {
		j.pauses = append(j.pauses, stretch{j.now, until})
	}
	j.retold()
}

func (j *judge) resume() {
	if j.unsure((*model.Limiter).Resume) {
		return
	}
	j.note("resume")
	j.subject.resume()
	j.model.Resume()
	for i := range j.pauses {
		j.pauses[i].to = min(j.pauses[i].to, j.now)
	}
}

func (j *judge) setRate(rate float64) {
	if j.unsure(func(m *model.Limiter) { m.SetRate(rate) }) {
		return
	}
	j.note("setRate %v", rate)
	j.subject.setRate(rate)
	j.model.SetRate(rate)
	j.constant, j.exact = false, false // what is stored scales by a quotient, which is rounded
}

func (j *judge) retime(rate float64) {
	if j.unsure(func(m *model.Limiter) { m.Retime(rate) }) {
		return
	}
	j.note("retime %v", rate)
	slower := rate < j.model.Rate()
	j.subject.retime(rate)
	j.model.Retime(rate)
	j.constant, j.exact = false, false
	if slower {
		j.retold()
	}
}

// retold is for what may make promised times later.
func (j *judge) retold() {
	for _, t := range j.tickets {
		if !t.gone {
			t.at = reserve.Forever
		}
	}
}

// look compares all that can be asked.
func (j *judge) look() {
	if j.over() {
		return
	}
	times := j.model.Times()
	for i, t := range j.tickets {
		if t.tried || t.permits == 0 {
			continue
		}
		at := j.subject.at(t.subject)
		what := fmt.Sprintf("#%d goes at", i)
		j.compare(what, at, times[t.model], true)
		j.keeps(what, t, at)
	}
	j.compare("next free", j.subject.nextFree(), j.model.NextFree(), false)
	if len(j.model.Waiting()) == 0 || j.kind.warm != nil { // otherwise what is stored is spoken for
		got, want := j.subject.stored(), j.model.Stored()
		excess := (got - want) * j.model.Interval() // as a time
		if slack := float64(j.slack()) + 1 + 1e-9*(1+want)*j.model.Interval(); math.Abs(excess) > slack {
			j.compare(fmt.Sprintf("stored %v, the model has %v; lacking, as a time", got, want), time.Duration(-excess), 0, false)
		}
	} else if got := j.subject.stored(); !j.kind.upfront && !j.model.Paused() && got > 0 {
		j.early = fmt.Sprintf("%v permits are stored, while somebody waits", got)
	}
}

// keeps checks what holds whatever the model says: no promised time becomes later, but for rounding (a
// nanosecond; more after a change of the rate, when amounts are scaled), and nobody who has gone is called back.
func (j *judge) keeps(what string, t *ticket, at time.Duration) {
	rounding := min(1, j.slack())
	if !j.constant {
		rounding = j.slack()
	}
	if (at-rounding > t.at || t.gone && at > j.now) && j.early == "" {
		j.early = fmt.Sprintf("%s %v, after a promise of %v", what, at, t.at)
	}
	t.at = at
	t.gone = t.gone || at <= j.now
}

// limiterTime is a time without the pauses before it.
func (j *judge) limiterTime(at time.Duration) time.Duration {
	end, sum := time.Duration(0), time.Duration(0)
	for _, p := range j.pauses {
		if from, to := max(p.from, end), min(p.to, at); from < to {
			sum += to - from
			end = to
		}
	}
	return at - sum
}

// invariant compares each two who go: of what was not given back, no more goes in any stretch than the store
// holds and the rate gives, the last one's own permits apart, which those behind it pay for. Paid upfront
// they count, and the first one may be larger than the store.
func (j *judge) invariant() {
	if !j.constant || j.early != "" {
		return
	}
	var used []*ticket
	for _, t := range j.tickets {
		if t.permits > 0 {
			used = append(used, t)
		}
	}
	sort.SliceStable(used, func(a, b int) bool { return used[a].at < used[b].at })
	for i, first := range used {
		sum := 0
		for _, last := range used[i:] {
			passed := j.limiterTime(last.at) - j.limiterTime(first.at) + j.slack() + 2
			limit := j.kind.capacity() + float64(passed)/j.kind.interval() + 1e-6
			if j.kind.upfront {
				sum += last.permits
				limit = max(limit, limit-j.kind.capacity()+float64(first.permits))
			}
			if float64(sum) > limit {
				j.early = fmt.Sprintf("%d permits go from %v to %v, where %.3f are allowed", sum, first.at, last.at, limit)
				return
			}
			if !j.kind.upfront {
				sum += last.permits
			}
		}
	}
}

// open lists those that can be settled.
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
	pauses
	rates
)

// run decodes a program, two bytes an operation, and does it to both.
func (j *judge) run(program []byte, with features) {
	unit := time.Duration(j.kind.interval()*float64(j.kind.unit)/16) + 1
	if j.exact {
		unit--
	}
	open := func() []int {
		if with&returns == 0 {
			return nil
		}
		return j.open()
	}
	for len(program) >= 2 && len(j.history) < 150 && !j.over() {
		op, arg := program[0]%20, int(program[1])
		program = program[2:]
		switch op {
		case 0, 1, 2, 3:
			j.reserve((1+arg%8)*j.kind.unit, reserve.Forever)
		case 4:
			j.reserve((1+arg%40)*j.kind.unit, reserve.Forever)
		case 5:
			j.reserve((1+arg%4)*j.kind.unit, time.Duration(arg/4)*unit)
		case 6:
			j.tryAcquire((1 + arg%4) * j.kind.unit)
		case 7, 8, 9: // anyone
			if open := open(); len(open) > 0 {
				j.settle(open[arg%len(open)], 0)
			}
		case 10, 11: // the latest
			if open := open(); len(open) > 0 {
				i := open[len(open)-1-arg>>4%len(open)]
				j.settle(i, max(0, j.tickets[i].permits-(arg&15)*j.kind.unit))
			}
		case 12:
			switch open := open(); {
			case len(j.tickets) > 0 && arg == 0 && with&returns != 0: // nothing, if it is settled
				j.settle(0, 0)
			case len(open) > 0 && with&charges != 0:
				i := open[len(open)-1-arg>>4%len(open)]
				j.settle(i, j.tickets[i].permits+(arg&15)*j.kind.unit)
			}
		case 13:
			switch {
			case with&pauses == 0:
			case arg%4 == 0:
				j.resume()
			default:
				j.pause(time.Duration(arg-32) * unit)
			}
		case 14:
			rate := j.kind.rate * []float64{0.5, 1, 2}[arg%3]
			switch {
			case with&rates == 0:
			case arg&64 != 0:
				j.retime(rate)
			default:
				j.setRate(rate)
			}
		case 15, 16:
			j.advance(time.Duration(arg%32) * unit)
		case 17:
			j.advance(time.Duration(arg) * 2 * unit)
		case 18, 19: // to the moment that one of them may go
			if len(j.tickets) > 0 {
				if d := j.tickets[arg%len(j.tickets)].at - j.now; d > 0 && d < time.Hour {
					j.advance(d)
				}
			}
		}
		j.look()
	}
	j.invariant()
}

// kinds are the limiters that random queues are run on. The first half of them is exact.
func kinds(upfront bool) (all []kind) {
	stores := []kind{
		{fixed: 0, isFixed: true},
		{burst: time.Second},
		{fixed: 10, isFixed: true, stored: 10},
		{fixed: 1, isFixed: true},
		{fixed: 2.5, isFixed: true, stored: 1.25},
		{fixed: 6, isFixed: true, stored: 3},
		{fixed: 40, isFixed: true, stored: math.Inf(1)},
		{burst: 300 * time.Millisecond, stored: 1},
	}
	for _, rate := range []float64{dyadic(27), dyadic(27), dyadic(20), dyadic(27), 10, 1000, 3, 7.3, 3e9} {
		for _, k := range stores {
			k.rate, k.upfront, k.unit = rate, upfront, 1
			if rate > 1e9 {
				k.unit = 1e6
				k.fixed *= 1e6
				k.stored *= 1e6
				k.burst /= 1e3
			}
			all = append(all, k)
		}
	}
	return all
}

// warming are warming-up limiters.
func warming(upfront bool) (all []kind) {
	for _, rate := range []float64{10, 3, 7.3, 1000, 2e6} {
		for _, k := range []kind{
			{warm: &model.WarmUp{Period: 2e9, ColdFactor: 3}, stored: math.Inf(1)},
			{warm: &model.WarmUp{Period: 2e9, ColdFactor: 3}},
			{warm: &model.WarmUp{Period: 1e9, ColdFactor: 1}, stored: math.Inf(1)},
			{warm: &model.WarmUp{Period: 8e9, ColdFactor: 7}, stored: math.Inf(1)},
			{warm: &model.WarmUp{Period: 5e8, ColdFactor: 1.5}, stored: 2},
		} {
			k.rate, k.upfront, k.unit = rate, upfront, 1
			if rate > 1e6 {
				k.unit = 1000
			}
			all = append(all, k)
		}
	}
	return all
}

func (k kind) judge(tb testing.TB) *judge {
	require.Positive(tb, k.unit)
	return newJudge(k, k.real(tb))
}
