package adapt

import (
	"cmp"
	"math"
	"time"
)

// proved reports whether dips have shown that other programs or dead backends cause the refusals, not copies.
func (i *imposed) proved() bool { return i.odds <= -telling }

// dip begins a dip, if none runs. It halves the calls. Of 503s it also leaves the refused share out, so that a limit of
// copies would refuse few.
func (r *Rate) dip(now time.Time, kind int, share float64) {
	i := &r.imposed[kind]
	if i.dip > 0 {
		return
	}
	if i.part = 0.5; kind == unable {
		i.part *= max(0.1, 1-share)
	}
	i.dip = i.part * min(r.used, cmp.Or(r.answered.perSecond(now), r.used))
	i.rate = i.dip
}

// test counts an answer while a share is believed. It belongs to where its call was sent.
func (r *Rate) test(now, sent time.Time, kind int, refused bool) {
	i, each := &r.imposed[kind], dipEach
	if now.Sub(i.begin) < each || kind == unable && i.share >= small && !i.proved() {
		each /= 4
	}
	i.slow = max(i.slow, min(now.Sub(sent), slowest))
	since := now.Sub(now.Truncate(each))
	switch {
	case since < dipTo:
		r.dip(now, kind, i.outside())
	case i.dip > 0:
		i.dip, i.out = 0, tally{since: now}
	case i.low.calls > 0 && since >= dipTo+i.slow && r.judge(now, kind):
		return
	}
	switch since := sent.Sub(sent.Truncate(each)); {
	case since >= dipTo:
		i.out.late(now, sent, refused, many)
		if kind == unable {
			i.seen.late(now, sent, refused, many)
		}
		if r.used <= i.rate { // as few as in a dip
			i.rare.late(now, sent, refused, manyRare)
		}
	case since >= dipFrom && sent.After(i.begin):
		i.low.count(now, sent, refused)
		if i.slow < dipFrom && r.judge(now, kind) {
			return
		}
		i.seen.count(now, sent, refused)
		i.rare.late(now, sent, refused, manyRare)
	}
	i.share = min(i.seen.share(), overRare*i.rare.share()+besides)
}

// outside returns the share outside of dips.
func (i *imposed) outside() float64 { return (i.out.refused + 0.5) / (i.out.calls + 1) }

// judge compares the answers to calls in a dip with those outside, and reports whether that ends the belief. Call it
// when all answers have come, since refusals may be the faster ones; if all answers are fast, after each.
func (r *Rate) judge(now time.Time, kind int) (ends bool) {
	i := &r.imposed[kind]
	share := min(i.share, i.outside()) // there may be none outside, either
	own, low := alone(share, i.part), i.low
	i.odds += low.refused*math.Log(own/share) + (low.calls-low.refused)*math.Log((1-own)/(1-share))
	i.odds, i.low = max(i.odds, -2*telling), tally{since: i.begin}
	if i.odds > telling {
		r.searching = false
		*i = imposed{wrong: now.Add(dipEach * doubt[kind]), before: i.before}
		return true
	}
	if i.proved() && low.refused > 0 {
		i.until = now.Add(remembered)
		r.back(now, kind)
	}
	return false
}

// back brings the rate back when a dip has proved the belief.
func (r *Rate) back(now time.Time, kind int) {
	i := &r.imposed[kind]
	switch {
	case kind == unable && r.limited == 0 && i.fell < 2*r.rate:
		i.fell, r.searching = math.Inf(1), r.rate < r.ceiling
	case kind == tooMany && i.fell < i.before.rate:
		i.fell = i.before.rate
		r.recall(now, i.fell)
	}
}

// brings returns the rate that a belief brings back.
func (r *Rate) brings(kind int, seen tally) float64 {
	before := r.imposed[kind].before
	fell := before.called * r.cost
	switch {
	case kind == unable:
		return max(fell, before.rate, further*r.rate)
	case r.stopped > 0: // so calls were few
		return math.Sqrt(fell * max(fell, before.rate))
	case seen.share() < small:
		return max(fell, before.rate)
	}
	return fell
}

// believe begins a belief, and plans the return to a rate from before the refusals.
func (r *Rate) believe(now time.Time, kind int, seen tally) {
	i, fell := &r.imposed[kind], r.brings(kind, seen)
	*i = imposed{
		share: seen.share(), budget: mostBudget, until: now.Add(remembered), fell: fell,
		begin: now, seen: seen, out: tally{since: now}, low: tally{since: now},
		rare: tally{since: now, calls: manyRare / 3, refused: manyRare / 3 * seen.share()}, before: i.before,
	}
	if r.elsewhere(kind) {
		fell = r.limited
	}
	r.recall(now, fell)
}

// Chance reports whether a refusal would be excused: it stops only its own call. notAble means 503 or 529. Call it
// before Refused.
func (r *Rate) Chance(notAble bool) bool { return r.covered(kindOf(notAble)) }

func kindOf(notAble bool) int {
	if notAble {
		return unable
	}
	return tooMany
}

// covered reports whether a refusal is no event.
func (r *Rate) covered(kind int) bool {
	i := &r.imposed[kind]
	return i.share > 0 && i.budget >= 1 && (r.rate <= i.fell || r.elsewhere(kind))
}

// tolerated pays for a covered refusal from the budget, and reports whether it was covered.
func (r *Rate) tolerated(kind int) bool {
	covered := r.covered(kind)
	if covered {
		r.imposed[kind].budget--
	}
	return covered
}

// spare counts an accepted call, which adds the share to the budget: twice, but for 429s only once until the belief is
// proved.
func (i *imposed) spare(now time.Time, kind int) {
	times := tolerance
	if kind == tooMany && !i.proved() {
		times = 1
	}
	i.budget = min(mostBudget, i.budget+float64(times*i.share/(1-i.share)))
	if i.share > 0 && now.After(i.until) {
		*i = imposed{before: i.before}
	}
}
