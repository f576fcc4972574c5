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
// before fit neither: the limit has moved. Copies have an event in each period at their right rate: that many refusals
// prove nothing.
//
// Where refusals stop all calls, a crowd has up to .3 of its calls refused in its first minute. There, 503s are
// believed of less than an eighth of the calls, or of more than a third; 429s of more than a third, or of more than an
// eighth with the third power of the odds. Where a limit has answered 429, its 503s are not the limit's, and need not
// outlast a fall.
//
// A belief is tested, because copies cut together: they may believe in each other's refusals. All believers dip at the
// same time: for two seconds of each 53 they call half as often. If then as few calls are refused as copies would see,
// the belief ends. If as many are as others would cause, it is proved. It is forgotten ten minutes after the last
// proof.
//
// Of 503s more is believed, and copies are the worse for it when their limit falls. So until the belief is proved, a
// dip comes each 13 s. It goes down to half of the part that is accepted, and a program that has fallen and does not
// believe yet dips with the believers.
//
// Refusals of the share are no events, and stop only their own call. A budget pays for them: accepted calls add the
// share to it, or twice the share.
//
// The rate comes back, too. Of 503s, it returns to the rate that a 429 cut last. Without one, it returns at first to
// the rate before, or to eight times the rate; when the belief is proved, it is searched. Of 429s, it returns at first
// to as many calls as there were; where refusals stopped all, to the geometric mean of these and the rate; when the
// belief is proved, to the rate before. A small share costs little if it is wrong: it brings that back at once. Above
// the rate to which a belief returns, each refusal is an event.
type imposed struct {
	before, now tally // the stretch before, this one

	share  float64   // of the calls; 0: no belief
	until  time.Time // it is forgotten: ten minutes after a dip has last proved it
	budget float64   // refusals that are no events
	fell   float64   // permits per second, before refusals cut the rate: above it they are events, too

	begin time.Time // of the belief
	seen  tally     // what the share is from
	out   tally     // since the last dip
	dip   float64   // permits per second, while calls go less often; else 0
	part  float64   // of the calls, in a dip
	odds  float64   // logarithm: that copies are the cause
	wrong time.Time // no other belief until then
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

	leastDip = 0.2 // calls per second
	further  = 8.  // times the rate, until 503s are proved

	mostBudget = 10. // refusals
	tolerance  = 2.  // times the share, to the budget
)

// doubt is the time after a belief that was wrong without another one, in dipEach.
var doubt = [kinds]time.Duration{tooMany: 1, unable: 3}

// A tally counts answers to calls sent since a refusal: a bucket was empty.
type tally struct {
	since          time.Time
	calls, refused float64
	perSecond      float64 // calls
	called, rate   float64 // calls per second, and permits, before they fell
}

func (t *tally) count(now, sent time.Time, rate float64, refused bool) {
	if t.since.IsZero() && refused {
		t.since, t.rate = now, rate
	}
	if t.since.IsZero() || !sent.After(t.since) || !now.After(t.since) {
		return
	}
	if t.calls++; refused {
		t.refused++
	}
	t.perSecond = t.calls / now.Sub(t.since).Seconds()
	t.called = t.perSecond
}

// forget halves a tally of a hundred calls: its share is of late.
func (t *tally) forget() {
	if t.calls >= 100 {
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
	if fallen := rate < rarer*i.before.rate; kind == unable && fallen && i.now.refused >= 2 && i.now.share() >= small &&
		now.Sub(now.Truncate(dipEach/4)) < dipTo {
		r.dip(now, kind, i.now.share())
	} else {
		i.dip = 0
	}
	i.now.count(now, sent, rate, refused)
	i.now.rate = cmp.Or(i.now.rate, r.answered.perSecond(now))
	seconds := now.Sub(i.now.since).Seconds()
	if min(i.now.refused, i.now.calls-i.now.refused) < few || !refused || seconds < span*min(r.period(), PerStop) {
		return
	}
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

// outlasts reports whether refusals are more than the law brings.
func (r *Rate) outlasts(now time.Time, kind int, seconds float64) bool {
	i, least := &r.imposed[kind], telling
	if r.elsewhere(kind) {
		least = 0
	}
	seen, expected := i.now.refused, seconds/r.period()
	odds := seen*math.Log(seen/expected) - seen + expected // of so many, if they came by chance (Poisson)
	return seen > expected && odds > least && r.guesses == 0 && now.After(i.wrong)
}
