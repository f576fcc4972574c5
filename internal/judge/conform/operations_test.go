package conform

import (
	"fmt"
	"math"
	"time"

	"github.com/nextfree/pace/internal/judge/model"
	"github.com/nextfree/pace/reserve"
)

func (j *judge) advance(d time.Duration) {
	d = j.kind.roundUp(d)
	for tries := 0; j.unsure(func(m *model.Limiter) { m.Advance(float64(d)) }); tries++ {
		if d = j.kind.roundUp(d + 5*j.slack() + 13); tries == 100 {
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
	if wait != never {
		j.compare(fmt.Sprintf("reserve %d waits", n), wait, wantWait, ok)
	}
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
	if t.tried || t.forgotten || j.unsure(func(m *model.Limiter) { m.Settle(t.model, actual) }) {
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
	j.subject.(tuned).pause(until)
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
	j.subject.(tuned).resume()
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
	j.rescaled(j.retimed || j.kind.isFixed, rate)
	j.subject.(tuned).setRate(rate)
	j.model.SetRate(rate)
}

func (j *judge) retime(rate float64) {
	if j.unsure(func(m *model.Limiter) { m.Retime(rate) }) {
		return
	}
	j.note("retime %v", rate)
	j.retimed = j.retimed || rate != j.model.Rate()
	j.rescaled(true, rate)
	j.subject.(tuned).retime(rate)
	j.model.Retime(rate)
}

// rescaled is for a change of the rate, which keeps permits or times. Times scale by a quotient, which is rounded.
func (j *judge) rescaled(permits bool, rate float64) {
	j.constant, j.exact = false, false
	if permits && rate < j.model.Rate() {
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
