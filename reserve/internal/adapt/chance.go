package adapt

import (
	"math"
	"time"
)

// chance tells refusals that depend on the rate from refusals that come at any rate: from a backend that
// is restarted, or a gateway that drops one call in a hundred.
//
// The background is the share of calls that the server refuses whatever the rate. A refusal counts for
// the rate only if the latest calls were refused more often than the background explains: a CUSUM test
// of the background against two excesses. Without a background one refusal is enough. With 3 % it
// takes three close together.
//
// The background is found by a trial: some calls are sent well below what the server accepted lately,
// then some at the rate, in turn, faster than another client could take up what is left. A limit
// refuses more of the fast ones; chance refuses as many of both. A trial begins when refusals of slow
// calls, or many cuts, make chance a suspect; and now and then while there is a background, which may
// have ended. Many cuts lead to a trial where a background is known, too: it may have been found by
// accident, or have become larger. If a trial sees no refusal at all, the rate is not too high either.
type chance struct {
	share float64 // the background; 0: none
	// Scores: how much likelier a large and a small excess is than the background, as a logarithm; at least 0.
	fast, slow float64

	all      tally   // calls at any rate
	below    tally   // calls well below what the server accepted
	held     float64 // refusals that are not in below yet
	spoilt   float64 // of these: led to a cut
	lone     tally   // like the field below, without refusals that led to a cut
	run      float64 // calls that were accepted since the last refusal
	cuts     float64 // since the last trial
	patience float64 // cuts that lead to a trial
	since    float64 // calls since the last trial
	last     time.Time
	doubt    float64 // a climb needs so many times as much evidence: it doubles when one was wrong
	tried    float64 // cuts when the last climb that was wrong began
	climbing bool

	trial trial
}

// A trial compares slow and fast calls.
type trial struct {
	on     bool
	slow   bool    // it is the turn of the slow calls
	left   float64 // calls of this turn
	length float64 // slow calls until it is over
	slows  tally
	fasts  tally
}

// A tally counts calls.
type tally struct{ calls, refused float64 }

func (t *tally) rate() float64 { return t.refused / max(1, t.calls) }

// forget halves what is old: all but the latest calls or, where refusals are kept, the latest refusals.
func (t *tally) forget(keep bool) {
	if t.calls > memory && (t.refused < 4 || !keep) || t.refused > 16 {
		t.calls, t.refused = t.calls/2, t.refused/2
	}
}

const (
	// Excesses that the test looks for, of the calls: a large one, and one as large as the background between the other two.
	large            = 0.25
	small, lessSmall = 0.02, 0.08  // the background, between these
	alarm            = 4.          // the score that is an alarm: one refusal, if the background is below 0.4 %
	unhurried        = 50.         // calls per second: at so many times more, an alarm needs the logarithm of that more
	careful          = 3.          // an alarm needs so much more where there is a background
	leastShare       = 1e-4        // of the calls
	mostShare        = 0.25        // of the calls: a background is never more
	belowShare       = 0.02        // of the calls: the least background of slow calls, for a lone refusal
	shown            = 2.          // refusals of slow calls that show a background, before a trial does
	tentative        = 20.         // calls that count as accepted besides those slow ones
	alone            = 5.          // calls that are accepted after a refusal by chance
	long             = 10.         // calls that were accepted before a refusal, so that it is a lone one
	memory           = 400.        // calls
	suspicious       = 3           // refusals of slow calls that lead to a trial
	patience         = 5.          // cuts below the estimate that do
	hits             = 5.          // refusals of slow calls that a trial should see
	clear            = 6.          // refusals of fast calls, and hardly any of slow ones, that end a trial
	quiet            = 0.8         // of the length of a trial: so many calls without a refusal end it
	spaced           = 4.          // lengths of a trial before the first one
	again            = 20.         // and from one to the next while there is a background
	pause            = time.Minute // which is so long at least
	firm             = 4.          // refusals that the share of the last trial counts for, beside those since
)

func excess(b float64) float64 { return min(max(b, small), lessSmall) }

// known reports whether the server refuses by chance.
func (c *chance) known() bool { return c.share > 0 }

// background returns the share of calls that is refused at any rate.
func (c *chance) background() float64 {
	b := c.share
	switch {
	case c.trial.on:
		b = max(b, hits/c.trial.length)
	case b > 0:
		b = (c.below.refused + firm) / (c.below.calls + firm/b)
	}
	return max(min(b, mostShare), leastShare)
}

// accepted counts a call that was accepted; slow says that it was sent well below what the server accepts.
func (c *chance) accepted(slow bool) {
	c.count(slow).calls++
	if c.run++; c.run >= alone {
		c.below.refused += c.held
		c.lone.refused += c.held - c.spoilt
		c.held, c.spoilt = 0, 0
	}
	if c.trial.on {
		c.trial.left--
	}
	b := c.background()
	c.fast = max(0, c.fast+math.Log((1-b-large)/(1-b)))
	c.slow = max(0, c.slow+math.Log((1-b-excess(b))/(1-b)))
}

// count counts a call, and returns the tally of its kind.
func (c *chance) count(slow bool) *tally {
	c.since++
	c.all.calls++
	c.all.forget(true)
	switch {
	case c.trial.on && slow:
		return &c.trial.slows
	case c.trial.on:
		return &c.trial.fasts
	case slow:
		c.below.forget(c.known())
		c.lone.forget(true)
		c.lone.calls++
		return &c.below
	}
	return &tally{}
}

// refused counts a refusal, and reports whether there are more than chance explains.
func (c *chance) refused(slow bool, perSecond float64) (alarming bool) {
	b := c.background()
	if slow {
		if c.below.refused >= shown {
			b = max(b, c.below.refused/(c.below.calls+tentative))
		}
		if c.run >= long {
			b = max(b, belowShare)
		}
	}
	c.all.refused++
	kind := c.count(slow)
	kind.calls++
	switch {
	case c.trial.on || c.known():
		kind.refused++
	case slow && c.run < alone && c.held > 0: // too close together
		c.held, c.spoilt = 1, 0
	case slow:
		c.held++
	case c.run < alone:
		c.held, c.spoilt = 0, 0
	}
	c.run = 0
	c.fast += math.Log((b + large) / b)
	c.slow += math.Log((b + excess(b)) / b)
	need := alarm
	if b > leastShare {
		need += math.Log(max(1, perSecond/unhurried))
	}
	if c.known() || c.trial.on {
		need += careful
	}
	if c.trial.on {
		need++
	}
	if c.climbing {
		need = math.Log((b+large)/b) + slips*b
	}
	if max(c.fast, c.slow) < need {
		return false
	}
	c.fast, c.slow = 0, 0
	c.spoilt = c.held // it was one of those that were too many
	return true
}

// cut counts a cut: early says that the rate was below the estimate, where a limit hardly refuses.
func (c *chance) cut(early bool) {
	if c.cuts += 0.25; early {
		c.cuts += 0.75
	}
}

// A finding is what a call changes in a trial.
type finding int

const (
	nothing   finding = iota
	begun             // a trial begins
	turned            // it is the turn of the others
	confirmed         // there is a background
	refuted           // there is none
	unfounded         // nor any refusal: the rate is no longer too high
)

// examine begins a trial where chance is suspected, carries it on, and ends it.
func (c *chance) examine(now time.Time) finding {
	if !c.trial.on {
		if !c.suspects(now) {
			return nothing
		}
		return begun
	}
	slows, fasts := c.trial.slows, c.trial.fasts
	switch {
	case slows.refused >= 4 && slows.rate() > mostShare:
		c.end(now, 0)
		return refuted
	case slows.refused >= 3 && slows.rate() <= mostShare && fasts.calls > 0 && slows.rate() >= 0.5*fasts.rate():
		before := c.share
		share := tally{slows.calls + fasts.calls, slows.refused + fasts.refused}
		if before > 0 {
			share = tally{share.calls + firm/before, share.refused + firm}
		}
		c.end(now, min(share.rate(), mostShare))
		c.patience, c.doubt = patience, 1
		return confirmed
	case fasts.refused >= clear && slows.rate() < 0.2*fasts.rate(),
		slows.calls >= c.trial.length && slows.refused < 2, slows.calls >= 1.5*c.trial.length && slows.refused < 3:
		share := 0.
		if c.known() && slows.refused > 0 {
			share = (slows.refused + firm) / (slows.calls + firm/c.share)
		}
		c.patience = min(2*c.patience, 16*patience)
		c.end(now, share)
		return refuted
	case slows.refused+fasts.refused == 0 && slows.calls+fasts.calls >= quiet*c.trial.length:
		c.end(now, 0)
		return unfounded
	case c.trial.left <= 0:
		c.trial.slow = !c.trial.slow
		return turned
	}
	return nothing
}

// suspects reports whether it is time for a trial, and begins it.
func (c *chance) suspects(now time.Time) bool {
	length := hits / min(max(c.all.rate(), c.below.rate()), mostShare)
	if c.cuts < c.patience && (c.known() || c.below.refused < suspicious) || c.since < spaced*length {
		if !c.known() || c.since < again*hits/c.share || now.Sub(c.last) < pause {
			return false
		}
		c.share = min(c.background(), mostShare)
		length = 1.5 * hits / c.share
	}
	c.trial = trial{on: true, length: length}
	c.fast, c.slow = 0, 0
	return true
}

// end starts afresh with this background.
func (c *chance) end(now time.Time, share float64) {
	*c = chance{share: share, patience: c.patience, doubt: c.doubt, last: now}
}
