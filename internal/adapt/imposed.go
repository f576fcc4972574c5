package adapt

import (
	"cmp"
	"math"
	"time"
)

// imposed finds a large share of 503s without a time that comes at any rate: backends are dead. If calls have become
// rarer by a third from one stretch to the next, and as large a share is refused, it is not the rate's doing. Copies
// cut together, so for them cutting helps. No call is sent to find out.
//
// Copies may believe in each other's refusals all the same. So who believes in 503s, also because of volleys, calls
// half as often for two seconds of each minute, as all others do who believe. If far fewer are refused then, copies
// were the cause, and the rate is again what it was before.
type imposed struct {
	begin       time.Time // of the stretch
	before, now tally     // in the stretch before, in this one

	found float64   // the rate when the belief began
	seen  tally     // what the share is from
	out   tally     // since then, outside of dips
	dip   float64   // permits per second, while calls go half as often; else 0
	odds  float64   // logarithm: that copies are the cause
	wrong time.Time // no other belief until then
}

type tally struct{ calls, refused, perSecond float64 }

const (
	span    = 0.7                    // of a period, in a stretch; at 1 dead backends starve three of 144 runs, not one
	rarer   = 2. / 3                 // times the calls of the stretch before
	same    = 0.75                   // of the share in the stretch before; 2/3: ten copies may have 40 % refused
	most503 = 0.5                    // is believed; at 1 copies have more refused
	crowded = 8.                     // refusals in a stretch
	dipEach = time.Minute            // between dips; in the first minute a quarter of it
	dipFrom = 500 * time.Millisecond // for calls that are out
	dipTo   = 2500 * time.Millisecond
	fewer   = 0.25 // of the share is refused in dips, if copies are the cause
	telling = 4.   // odds
)

func (t *tally) add(refused bool) {
	if t.calls++; refused {
		t.refused++
	}
}

func (t *tally) share() float64 { return t.refused / max(1, t.calls) }

// weigh counts an answer.
func (r *Rate) weigh(now time.Time, refused bool) {
	i := &r.imposed
	if r.chance[unable].share > 0 {
		r.test(now, refused)
		return
	}
	i.dip = 0
	i.now.add(refused)
	seconds := now.Sub(i.begin).Seconds()
	if seconds < span*r.period() {
		return
	}
	i.now.perSecond = i.now.calls / seconds
	like := i.before.refused > 1 && i.now.share() < most503 && i.now.like(i.before)
	outlasts := like && i.now.refused > crowded && i.now.perSecond < rarer*i.before.perSecond
	if outlasts && r.guesses == 0 && now.After(i.wrong) {
		r.believe(now, unable, i.now)
		return
	}
	if !like || i.now.perSecond >= i.before.perSecond {
		i.before = i.now
	}
	i.begin, i.now = now, tally{}
}

// like reports whether about as large a share is refused.
func (t *tally) like(before tally) bool {
	return t.share() > same*before.share() && before.share() > same*t.share()
}

// test counts an answer while a share is believed.
func (r *Rate) test(now time.Time, refused bool) {
	i, c, each := &r.imposed, &r.chance[unable], dipEach
	if now.Sub(i.begin) < each {
		each /= 4
	}
	since := now.Sub(now.Truncate(each))
	switch {
	case since >= dipTo:
		i.dip = 0
		i.out.add(refused)
		return
	case i.dip == 0:
		i.dip = min(r.used, cmp.Or(r.answered.perSecond(now), r.used)) / 2
	}
	if since < dipFrom {
		return
	}
	i.odds += (1 - fewer) * min(c.share, i.out.share())
	if i.seen.add(refused); refused {
		i.odds += math.Log(fewer)
	}
	c.share = i.seen.share()
	switch {
	case i.odds > telling:
		*c, r.searching, r.rate = chance{}, false, min(r.rate, i.found)
		*i = imposed{begin: now, wrong: now.Add(remembered)}
	default:
		i.odds = max(i.odds, -telling)
	}
}
