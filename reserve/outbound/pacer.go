package outbound

import (
	"math"
	"time"
)

// A pacer finds the rate that a server accepts. It is arithmetic only: no clock, no
// lock.
//
// It is AIMD with the growth of CUBIC (RFC 9438), as in the adaptive mode of AWS's
// SDKs, with three differences. A refusal cuts the rate once per event: refusals of requests
// that were sent before the last cut say nothing new. (In AWS's each response cuts again,
// and 54 refusals at once bring 986/s down to 1/s.) The rate grows back not to the
// one that was refused but to the middle between that and the cut, and further only
// slowly; who is refused again on the way there had not been cut enough, and aims as low as if
// it had been refused right after the cut. And who got there slowly is only a little too fast, so
// the cut is small then.
//
// At 80/s against a server that accepts 50/s: refused at 80, cut to 56; refused
// again, cut to 39.2; back at 47.6 after 2.8 s, at 50 after another 6 s.
//
// If the rate is not known (its ceiling is +Inf) the first request goes alone, as a
// probe. If the server does not say a rate in reply, the rate starts at firstRate and doubles every
// doubling until a refusal.
type pacer struct {
	ceiling float64 // never above
	rate    float64 // now; +Inf: not known
	offered float64 // what the server said it allows, less the margin; +Inf: nothing
	heard   time.Time
	cut     time.Time // the last
	phase   phase
	since   time.Time // when the phase began
	low     float64   // the rate then
	goal    float64   // of the regrowth
	sent    meter
}

// The phases of a pacer.
type phase int

const (
	settled  phase = iota // nobody has been refused: at the ceiling, or as offered
	doubling              // no rate is known
	regrowth              // after a cut
)

const (
	steep  = 0.7  // what a cut leaves of the rate
	gentle = 0.9  // the same, if the rate had grown slowly
	found  = 0.55 // the same, of a rate that was doubling: the last one that was accepted may be half of it
	// cubic is CUBIC's constant C, for rates per second, as in AWS's.
	cubic = 0.4
	// Beyond its goal a rate grows by slow of the goal each second, at first, and later by faster*t³.
	slow, faster = 0.005, 0.005

	leastRate   = 0.5 // per second; as in AWS's
	firstRate   = 16. // per second
	doubledIn   = 500 * time.Millisecond
	margin      = 0.98 // of what the server says it allows: its clock and the network are not exact
	leastChange = 0.02 // of the rate; smaller ones are not worth re-timing a queue
)

func newPacer(ceiling float64) pacer {
	return pacer{ceiling: ceiling, rate: ceiling, offered: math.Inf(1)}
}

// unknown reports whether no rate is known yet, so that a probe is needed.
func (p *pacer) unknown() bool { return math.IsInf(p.rate, 1) }

// say takes note of the rate that the server says it allows, in the response to a request
// sent at the given time, which counts only if it is the latest. A lower
// rate holds at once, a higher one too, unless a refusal has shown that it is too much.
func (p *pacer) say(now, sent time.Time, rate float64) {
	if sent.Before(p.heard) {
		return
	}
	p.heard = sent
	p.offered = rate * margin
	if p.phase == doubling {
		p.phase = settled
	}
	p.grow(now)
}

// accept takes note of a request that the server did not refuse.
func (p *pacer) accept(now time.Time) {
	if p.unknown() && math.IsInf(p.offered, 1) {
		p.phase, p.since, p.low = doubling, now, firstRate
		p.rate = firstRate
	}
	if p.silent(now) {
		p.offered = math.Inf(1)
		if p.phase == settled && math.IsInf(p.ceiling, 1) {
			p.phase, p.since, p.low = doubling, now, p.limit(p.rate)
		}
	}
	p.grow(now)
}

// silent reports whether what the server said it allows is too old to count: a server need not
// repeat itself, but "1 left for 10 minutes", said once, must not hold for good.
func (p *pacer) silent(now time.Time) bool {
	return !math.IsInf(p.offered, 1) && now.Sub(p.heard) > widest
}

// refuse takes note of a request, sent at the given time, that the server refused
// and that stops this client until resume, and reports whether it was the first of an event.
func (p *pacer) refuse(now, sent, resume time.Time) bool {
	if !sent.After(p.cut) {
		return false
	}
	p.ease(now, resume, p.leaves(now))
	return true
}

// slow takes note of a server that has nothing left for a moment, without having
// refused anything: the rate is a little too high. Like refusals, such requests count once per event.
func (p *pacer) slow(now, sent time.Time) {
	switch {
	case p.unknown():
		p.accept(now)
	case now.Sub(p.cut) >= shortest && sent.After(p.cut):
		p.ease(now, now, gentle)
	}
}

// leaves returns what a cut leaves of the rate.
func (p *pacer) leaves(now time.Time) float64 {
	switch {
	case p.phase == doubling:
		return found
	case p.phase == regrowth && now.Sub(p.since).Seconds() > p.regrown():
		return gentle
	default:
		return steep
	}
}

// ease cuts the rate.
func (p *pacer) ease(now, resume time.Time, leave float64) {
	rate := p.rate
	if p.unknown() {
		rate = firstRate
	}
	if sent, ok := p.sent.perSecond(now); ok && p.phase != doubling { // where the average lags behind
		rate = min(rate, sent)
	}
	middle := (1 + leave) / 2
	goal := rate * middle
	if p.phase == regrowth && leave == steep { // refused on the way up: it is the cut that was too small
		goal = min(goal, p.low*middle)
	}
	p.low = p.limit(rate * leave)
	p.goal = max(p.low, goal)
	p.rate = p.low
	p.phase, p.cut, p.since = regrowth, now, now
	if resume.After(now) {
		p.since = resume // nothing is learned before
		p.sent.skip(resume.Sub(now))
	}
}

// grow brings the rate up to date.
func (p *pacer) grow(now time.Time) {
	rate := p.limit(p.aim(now))
	if rate > p.rate && p.phase != settled { // not on behalf of requests that nobody makes
		if sent, ok := p.sent.perSecond(now); ok {
			rate = max(p.rate, min(rate, 2*sent))
		}
	}
	if rate == p.limit(math.Inf(1)) || math.Abs(rate-p.rate) >= leastChange*p.rate {
		p.rate = rate
	}
}

// aim returns the rate that the phase wants now.
func (p *pacer) aim(now time.Time) float64 {
	t := max(0, now.Sub(p.since).Seconds())
	switch p.phase {
	case doubling:
		return p.low * math.Exp2(t/doubledIn.Seconds())
	case regrowth:
		k := p.regrown()
		if t < k {
			return p.goal - float64(cubic*math.Pow(k-t, 3))
		}
		t -= k
		return p.goal + float64(p.goal*slow*t) + float64(faster*t*t*t)
	default:
		return math.Inf(1)
	}
}

// regrown returns how many seconds after its begin the regrowth is at its goal:
// CUBIC's K.
func (p *pacer) regrown() float64 { return math.Cbrt((p.goal - p.low) / cubic) }

// limit keeps a rate between the least one and what is allowed.
func (p *pacer) limit(rate float64) float64 {
	return min(max(rate, leastRate), p.offered, p.ceiling)
}

// A meter measures how many requests a second are sent: an average over bins of half
// a second or more, in which the latest counts for 0.8, as in AWS's.
type meter struct {
	begin   time.Time // of the bin
	count   float64   // in the bin
	average float64
	full    bool // there was a bin before
}

const (
	bin      = 500 * time.Millisecond
	leastBin = 100 * time.Millisecond // for a first guess
)

// add counts a request.
func (m *meter) add(now time.Time) {
	if m.begin.IsZero() {
		m.begin = now
	}
	if d := now.Sub(m.begin); d >= bin {
		latest := m.count / d.Seconds()
		if m.full {
			latest = 0.8*latest + 0.2*m.average
		}
		m.average, m.full = latest, true
		m.begin, m.count = now, 0
	}
	m.count++
}

// skip leaves out a time in which nothing can be sent.
func (m *meter) skip(d time.Duration) {
	if !m.begin.IsZero() {
		m.begin = m.begin.Add(d)
	}
}

// perSecond returns the average, if enough is known for one.
func (m *meter) perSecond(now time.Time) (float64, bool) {
	d := now.Sub(m.begin)
	latest, known := m.count/d.Seconds(), m.count > 1 && d >= leastBin
	switch {
	case !m.full:
		return latest, known
	case known:
		return max(m.average, latest), true // the average lags behind a rate that rises
	default:
		return m.average, true
	}
}
