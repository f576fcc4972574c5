package adapt

import (
	"cmp"
	"math"
	"time"
)

// imposed finds a share of refusals that comes at any rate: a backend is dead, a gateway drops one call in a hundred,
// or other programs do not yield. 429s and 503s each may have one. No call is sent to find out.
//
// It begins when calls have become rarer by a third. Two stories explain the refusals since. If all calls are this
// program's, as many as before are accepted, and fewer are refused. If they are few among others, as large a share is
// refused. The likelier story is believed, by a ratio of odds (Wald's sequential test). More refusals per second than
// before fit neither: the limit has moved. Copies have an event in each period at their right rate: refusals as rare as
// that begin no belief.
//
// Where refusals stop all calls, a crowd has up to .3 of its calls refused in its first minute. There, 503s are
// believed of less than an eighth of the calls, or of more than a third; 429s of more than a third, or of more than an
// eighth with the third power of the odds. Where a limit has answered 429, its 503s are not the limit's, and need not
// outlast a fall.
//
// A belief is tested, because copies cut together: they may believe in each other's refusals. All believers dip at the
// same time: for 2.5 s of each 53 they call half as often. Their clocks must agree to half a second. If then as few
// calls are refused as copies would see, the belief ends. If as many are as others would cause, it is proved. It ends
// ten minutes after the last refusal in a dip that left it proved.
//
// In its first 53 s, a belief has a dip each 13 s. A belief in 503s of an eighth of the calls keeps to that until it is
// proved: copies are the worse for it when their limit falls. Its dips also leave the refused share out, as half the
// calls would tell nothing of a share of .7. A program that has fallen and does not believe yet dips with the others.
//
// The share is that of the last hundred calls; of 429s, in dips. It is at most 1.3 times the share of calls as rare as
// in a dip: of more calls, some are refused because of their own rate.
//
// Of fewer than three calls a second 429s are not believed, since a dip has too few of them. 503s are.
//
// Refusals of the share are no events, and stop only their own call. A budget pays for them: an accepted call adds
// share/(1-share) to it; twice that for 503s, and when 429s are proved.
//
// A belief brings the rate back. With 503s, it is the rate that a 429 cut last; without such, the rate before or eight
// times the rate, and when the belief is proved, a search. With 429s, it is as many calls as there were, or where
// refusals stopped all, the geometric mean of these and the rate; when the belief is proved, or the share is small and
// no refusal stopped all, the rate before. Above what it brings back each refusal is an event.
type imposed struct {
	before, now tally // the stretch before, this one

	share  float64   // of the calls; 0: no belief
	until  time.Time // it ends
	budget float64   // refusals that are no events
	fell   float64   // permits per second that it brings back: above them refusals are events

	begin time.Time     // of the belief
	seen  tally         // what the share is from
	rare  tally         // when calls were as rare as in a dip
	out   tally         // outside of dips, since the last one
	low   tally         // in a dip that is not judged
	slow  time.Duration // the slowest answer
	dip   float64       // permits per second, while calls go less often; else 0
	rate  float64       // the same of the latest dip
	part  float64       // of the calls, in a dip
	odds  float64       // logarithm: that copies are the cause
	wrong time.Time     // no other belief until then
}

// Kinds of refusals.
const (
	tooMany = iota // 429
	unable         // 503, 529
	kinds
)

const (
	span    = 0.7    // of a period, up to 25 s, in a stretch
	rarer   = 2. / 3 // times the calls of the stretch before
	more    = 1.5    // times the refusals per second before: the limit has moved
	crowded = 12.    // refusals in a stretch
	telling = 4.     // logarithm of odds
	certain = 12.    // the same
	fewer   = 0.15   // of the share is refused, at least, if the own calls are the cause
	small   = 0.12   // of the calls
	large   = 0.35   // of the calls, where refusals stop all

	dipEach = 53 * time.Second       // between dips, a quarter at first: a prime, to meet windows at all of their parts
	dipFrom = 500 * time.Millisecond // for calls that are out
	dipTo   = 2500 * time.Millisecond
	slowest = 10 * time.Second // answers, for which a dip waits

	many     = 100. // calls tell the share of late
	manyRare = 60.  // the same of rare calls
	overRare = 1.3  // times their share
	besides  = 0.03 // and this is believed at most

	fewest   = 3.  // calls per second for a belief in 429s: of fewer, dips have too few to tell
	leastDip = 0.2 // calls per second
	further  = 8.  // times the rate, until 503s are proved

	mostBudget = 10. // refusals
	tolerance  = 2.  // times the share, to the budget
)

// doubt is the time after a belief that was wrong without another one, in dipEach.
var doubt = [kinds]time.Duration{tooMany: 1, unable: 3}

// A tally counts answers to calls sent after since: at a refusal, as a bucket was empty then, or at the end of a dip.
type tally struct {
	since          time.Time
	calls, refused float64
	perSecond      float64 // calls
	called, rate   float64 // calls per second, and permits, before they fell if they have
}

func (t *tally) count(now, sent time.Time, refused bool) {
	if t.since.IsZero() || !sent.After(t.since) || !now.After(t.since) {
		return
	}
	if t.calls++; refused {
		t.refused++
	}
	t.perSecond = t.calls / now.Sub(t.since).Seconds()
	t.called = t.perSecond
}

// late counts an answer, and halves a tally of so many calls: its share is of late.
func (t *tally) late(now, sent time.Time, refused bool, calls float64) {
	if t.count(now, sent, refused); t.calls >= calls {
		t.calls, t.refused = t.calls/2, t.refused/2
	}
}

func (t *tally) share() float64 { return t.refused / max(1, t.calls) }

// alone returns the share that would be refused if all calls were the own ones, and became rarer.
func alone(share, rarer float64) float64 { return max(0, 1-(1-share)/rarer, fewer*share) }

// odds returns the logarithm of the odds that the share is imposed, after a stretch with more calls per second; and
// whether the limit has moved.
func (t *tally) odds(before tally) (odds float64, moved bool) {
	fell := min(1, t.perSecond/before.perSecond)
	was := (before.refused + 0.5) / (before.calls + 1)
	if t.share() > more*was/fell {
		return 0, true
	}
	theirs := min(max(t.share(), was), 0.95)
	own := min(alone(was, fell), theirs)
	return t.refused*math.Log(theirs/own) + (t.calls-t.refused)*math.Log((1-theirs)/(1-own)), false
}

// weigh counts an answer.
func (r *Rate) weigh(now, sent time.Time, kind int, refused bool) {
	i := &r.imposed[kind]
	if i.share > 0 {
		r.test(now, sent, kind, refused)
		return
	}
	rate := r.tried(now)
	r.join(now, kind, rate)
	if i.now.since.IsZero() && refused {
		i.now.since, i.now.rate = now, rate
	}
	i.now.count(now, sent, refused)
	i.now.rate = cmp.Or(i.now.rate, r.answered.perSecond(now))
	seconds := now.Sub(i.now.since).Seconds()
	if min(i.now.refused, i.now.calls-i.now.refused) < few || !refused || seconds < span*min(r.period(), PerStop) {
		return
	}
	r.decide(now, kind, rate, seconds)
}

// join begins a dip where others test a belief in 503s, if refusals have cut the rate by a third.
func (r *Rate) join(now time.Time, kind int, rate float64) {
	i := &r.imposed[kind]
	fallen := kind == unable && rate < rarer*i.before.rate && i.now.refused >= 2 && i.now.share() >= small
	if !fallen || now.Sub(now.Truncate(dipEach/4)) >= dipTo {
		i.dip = 0
		return
	}
	r.dip(now, kind, i.now.share())
}

// decide ends a stretch: with a belief, a new stretch, or more patience.
func (r *Rate) decide(now time.Time, kind int, rate, seconds float64) {
	i := &r.imposed[kind]
	called := i.before.perSecond
	if kind == unable && r.stopped == 0 && i.now.share() < small { // such a belief costs little: so it may come sooner
		called = max(called, i.before.rate/r.cost)
	}
	fell := i.before.calls > 0 && i.now.perSecond < rarer*called
	odds, moved := i.now.odds(i.before)
	switch {
	case (fell && odds > r.enough(kind, i.now.share()) || r.elsewhere(kind)) && r.outlasts(now, kind, seconds):
		r.believe(now, kind, i.now)
		return
	case fell && odds > -telling && i.now.refused < crowded:
		return
	case i.now.perSecond < i.before.perSecond:
		if odds > -telling && !moved && (fell || odds > 0) {
			i.now = tally{since: now, rate: rate}
			return
		}
		i.now.called, i.now.rate = i.before.called, max(i.now.rate, i.before.rate)
	}
	i.before, i.now = i.now, tally{since: now, rate: rate}
}

// tried returns the permits per second that go, or 0 if unknown: a search may be far above them.
func (r *Rate) tried(now time.Time) float64 {
	answered := r.answered.perSecond(now)
	if answered == 0 && !math.IsInf(r.rate, 1) {
		return r.rate
	}
	return min(r.rate, answered)
}

// elsewhere reports whether refusals are not the limit's, which has answered 429.
func (r *Rate) elsewhere(kind int) bool { return kind == unable && r.limited > 0 }

// enough returns the odds that tell a share from a crowd's.
func (r *Rate) enough(kind int, share float64) float64 {
	switch {
	case r.stopped == 0, share >= large, kind == unable && share < small:
		return telling
	case kind == tooMany && share >= small:
		return certain
	}
	return math.Inf(1)
}

// outlasts reports whether refusals are more than the law brings, and a belief in them can be tested.
func (r *Rate) outlasts(now time.Time, kind int, seconds float64) bool {
	i, least := &r.imposed[kind], telling
	if r.elsewhere(kind) {
		least = 0
	}
	seen, expected := i.now.refused, seconds/r.period()
	odds := seen*math.Log(seen/expected) - seen + expected // of so many, if they came by chance (Poisson)
	tested := kind == unable || r.brings(kind, i.now) >= fewest*r.cost
	return tested && seen > expected && odds > least && r.guesses == 0 && now.After(i.wrong)
}
