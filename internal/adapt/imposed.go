package adapt

import (
	"cmp"
	"math"
	"time"
)

// imposed finds a large share of refusals that comes at any rate: backends are dead, or other programs do not yield, as
// exponential backoff and a fixed rate. No call is sent to find out.
//
// When calls have become rarer by a third, two stories explain the refusals since. If all calls are this program's, as
// many as before are accepted, and fewer are refused. If they are few among others, as large a share is refused. The
// likelier story is believed, by a ratio of odds (Wald's sequential test). More refusals per second than before fit
// neither: the limit has moved.
//
// Copies cut together, so for them cutting helps. They may believe in each other's refusals all the same. So who
// believes calls half as often for two seconds of each minute, as all others do who believe. If as much is refused as
// copies would then have refused, the rate is again what it was before. If it is what others would, the belief is
// proved, and the rate before comes back. Until then as many calls come back as there were; where refusals stopped all,
// the geometric mean of these and the rate. While 429s are imposed, their stop holds only for the refused call.
type imposed struct {
	before, now tally // the stretch before, this one

	begin time.Time // of the belief
	found float64   // the rate when the belief began; 0: none
	seen  tally     // what the share is from
	out   tally     // since then, outside of dips
	dip   float64   // permits per second, while calls go half as often; else 0
	odds  float64   // logarithm: that copies are the cause
	wrong time.Time // no other belief until then
}

const (
	span    = 0.7                    // of a period, up to 25 s, in a stretch
	rarer   = 2. / 3                 // times the calls of the stretch before
	more    = 1.5                    // times the refusals per second before: the limit has moved
	crowded = 12.                    // refusals in a stretch
	often   = 3.                     // refusals in a period; at 1 copies believe that have found their rate
	oftener = 8.                     // the same, where refusals stop all
	large   = 0.2                    // of the calls: less is chance
	largest = 0.35                   // the same, where refusals stop all: copies have .3 refused at 2/s each
	most503 = 0.5                    // is believed of 503s; at 1 thirty copies have more refused
	dipEach = time.Minute            // between dips; in the first minute a quarter of it
	dipFrom = 500 * time.Millisecond // for calls that are out
	dipTo   = 2500 * time.Millisecond
	fewer   = 0.15 // of the share is refused, at least, if the own calls are the cause
	telling = 4.   // odds
)

// A tally counts answers to calls sent since a refusal: a bucket was empty.
type tally struct {
	since          time.Time
	calls, refused float64
	perSecond      float64 // calls
	called, rate   float64 // calls per second, and the rate, before they fell
}

func (t *tally) count(now, sent time.Time, rate float64, refused bool) {
	if t.since.IsZero() && refused {
		t.since, t.rate = now, rate
	}
	if t.since.IsZero() || !sent.After(t.since) || !now.After(t.since) {
		return
	}
	if t.calls == 0 && math.IsInf(t.rate, 1) { // it was searched since
		t.rate = rate
	}
	if t.calls++; refused {
		t.refused++
	}
	t.perSecond = t.calls / now.Sub(t.since).Seconds()
	t.called = t.perSecond
}

func (t *tally) share() float64 { return t.refused / max(1, t.calls) }

// alone returns the share that would be refused if all calls were the own ones, and became rarer.
func alone(share, rarer float64) float64 { return max(0, 1-(1-share)/rarer, fewer*share) }

// odds returns the logarithm of the odds that the share is imposed, after a stretch with more calls per second.
func (t *tally) odds(before tally) float64 {
	fell := min(1, t.perSecond/before.perSecond)
	was := (before.refused + 0.5) / (before.calls + 1)
	if t.share() > more*was/fell {
		return 0
	}
	own, theirs := alone(was, fell), min(max(t.share(), was), 0.95)
	return t.refused*math.Log(theirs/own) + (t.calls-t.refused)*math.Log((1-theirs)/(1-own))
}

// weigh counts an answer.
func (r *Rate) weigh(now, sent time.Time, kind int, refused bool) {
	i := &r.imposed[kind]
	if r.chance[kind].share > 0 {
		if i.found > 0 {
			r.test(now, sent, kind, refused)
		}
		return
	}
	i.dip, i.found = 0, 0
	i.now.count(now, sent, r.rate, refused)
	seconds := now.Sub(i.now.since).Seconds()
	if min(i.now.refused, i.now.calls-i.now.refused) < few || !refused || seconds < span*min(r.period(), PerStop) {
		return
	}
	fell, odds := i.before.calls > 0 && i.now.perSecond < rarer*i.before.perSecond, 0.
	if fell {
		odds = i.now.odds(i.before)
	}
	switch {
	case odds > telling && r.outlasts(now, kind, seconds):
		r.believe(now, kind, i.now)
		return
	case fell && odds > -telling && i.now.refused < crowded:
		return
	case i.now.perSecond < i.before.perSecond:
		i.now.called, i.now.rate = i.before.called, max(i.now.rate, i.before.rate)
		if odds > -telling && (fell || i.now.odds(i.before) > 0) {
			i.now = tally{since: now, rate: r.rate}
			return
		}
	}
	i.before, i.now = i.now, tally{since: now, rate: r.rate}
}

// outlasts reports whether refusals are more than the law brings.
func (r *Rate) outlasts(now time.Time, kind int, seconds float64) bool {
	i, least, from, to := &r.imposed[kind], often, large, 1.
	if r.stopped > 0 {
		least, from = oftener, largest
	}
	if kind == unable {
		from, to = 0, min(most503, more*i.before.share())
	}
	share, many := i.now.share(), i.now.refused*r.period() > least*seconds
	return many && share >= from && share < to && r.guesses == 0 && now.After(i.wrong)
}

// proved reports whether dips have shown that others are the cause.
func (i *imposed) proved() bool { return i.odds <= -telling }

// test counts an answer while a share is believed.
func (r *Rate) test(now, sent time.Time, kind int, refused bool) {
	i, c, each := &r.imposed[kind], &r.chance[kind], dipEach
	if now.Sub(i.begin) < each {
		each /= 4
	}
	since := now.Sub(now.Truncate(each))
	switch {
	case since >= dipTo:
		i.dip = 0
		i.out.count(now, sent, r.rate, refused)
		return
	case i.dip == 0:
		i.dip = min(r.used, cmp.Or(r.answered.perSecond(now), r.used)) / 2
	}
	if since < dipFrom {
		return
	}
	share := c.share
	if i.out.refused > 0 {
		share = min(share, i.out.share())
	}
	if own := alone(share, 0.5); refused {
		i.odds += math.Log(own / share)
	} else {
		i.odds += math.Log((1 - own) / (1 - share))
	}
	i.seen.count(now, sent, r.rate, refused)
	c.share = i.seen.share()
	switch {
	case i.odds > telling:
		r.searching, r.rate = false, min(r.rate, i.found)
		*c, *i = chance{}, imposed{wrong: now.Add(remembered)}
	case i.proved() && kind == tooMany && c.fell < i.before.rate:
		c.fell = i.before.rate
		r.recall(now, c.fell)
	}
	i.odds = max(i.odds, -2*telling)
}
