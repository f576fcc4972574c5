package adapt

import (
	"math"
	"time"
)

// share is what a refusal leaves of the rate, and of the estimate.
type share struct{ rate, estimate float64 }

var (
	// Of a rate that was doubling: a bucket hides for a while that it is too high. And of a ceiling
	// that nothing has proven yet, which is a search, too.
	overshot = share{0.4, 0.42}
	unproven = share{0.6, 0.618}
	followed = share{0.6, 0.66}
	// The same where a refusal brings no stop, so that it is cheap to be wrong.
	overshotCheaply = share{0.65, 0.78}
	followedCheaply = share{0.6, 0.7}
	steepCheaply    = share{0.8, 0.9}

	steep    = share{0.7, 0.82}  // of a rate that had not reached the estimate
	gentle   = share{0.93, 0.97} // of one that had
	warned   = share{0.9, 0.97}  // where nothing was refused
	pardoned = share{0.93, 1}    // of a rate that had lasted
)

// lower cuts the rate after a refusal that is about it; known says that the server also refuses by chance.
func (r *Rate) lower(now, resume time.Time, known bool) {
	rate := r.rate
	if r.Unknown() {
		rate = firstRate * r.cost
	}
	if now.Sub(r.cut.Add(r.stopped)).Seconds() > lasting {
		r.top, r.searched = 0, false
	}
	r.top = max(r.top, rate)
	r.searched = r.searched || r.phase == search && !known
	said, before := max(0, resume.Sub(now)), r.period
	stop := said
	if known {
		resume, stop = now, 0 // it is one of many refusals, and stops only its own call
	}
	leave := r.leaves(now, stop)
	if perSecond, known := r.sent.perSecond(now); known && (r.phase != search || perSecond < rate/2) {
		rate = min(rate, max(perSecond, rate/3))
	}
	r.estimate = rate * leave.estimate
	r.schedule(now, said, leave, rate, before)
	accepted, measured := r.measured(now)
	r.remember(now, leave, rate, accepted, measured)
	low := rate * leave.rate
	if quota, ok := r.quota(now, resume); ok && quota < r.estimate && leave != pardoned {
		r.estimate, low = quota, quota
	} else if measured && accepted > r.estimate { // a bucket allows at least what it has allowed
		r.estimate = max(min(accepted, rate*gentle.estimate), r.estimate)
		low = max(low, r.estimate*0.96)
	}
	if stop > 0 { // the bucket fills up meanwhile
		low = max(low, r.estimate*gentle.estimate)
	}
	if r.phase == search {
		r.ended = rate
	}
	r.begin(regrowth, r.limit(low))
	r.rate = r.low
	r.cut, r.stopped, r.proven, r.row, r.accepted, r.used = now, stop, false, 0, 0, now.Add(stop)
	r.sent.skip(stop)
	r.done.skip(stop)
	r.best.skip(stop)
	if r.wasted = 0; known {
		r.wasted = 2
	}
	r.waste()
}

// schedule says when another refusal is risked.
func (r *Rate) schedule(now time.Time, stop time.Duration, leave share, rate, before float64) {
	unit := r.unit()
	longest := latest * unit
	r.period = min(max(soonest*unit, perStop*stop.Seconds()), longest)
	r.fell = rate*leave.rate < moved*r.good && now.Sub(r.goodAt).Seconds() < latest
	switch {
	case r.fell:
		r.period = soonest * unit
	case leave == pardoned:
		r.pardoned = now
		r.period = 2 * min(max(1, stop.Seconds()), latest)
	case leave == gentle:
		r.period = max(r.period, min(2*before, longest))
	}
}

// remember keeps what was accepted when the rate was right for long.
func (r *Rate) remember(now time.Time, leave share, rate, accepted float64, measured bool) {
	if r.phase == settled {
		accepted = rate
	}
	if (r.phase == settled && leave == steep || measured && now.Sub(r.cut)-r.stopped > time.Second) &&
		(accepted >= moved*r.good || now.Sub(r.goodAt).Seconds() >= latest) {
		r.good, r.goodAt = accepted, now
	}
}

// waste counts a refused call. The next attempt will probably waste as many, so it waits until that
// would be at most a hundredth of all calls: at 50/s, with 4 of them, for 8 s. A limit that has moved,
// and may move back, is worth more.
func (r *Rate) waste() {
	if r.wasted++; !r.fell {
		r.period = max(r.period, min(r.wasted/tolerated*r.cost/r.estimate, latest*r.unit()))
	}
}

// leaves returns what a refusal leaves.
func (r *Rate) leaves(now time.Time, stop time.Duration) share {
	stops := stop > 0
	switch {
	case r.phase == settled && r.grown >= lasting && now.Sub(r.pardoned).Seconds() > max(latest, perStop*stop.Seconds()):
		return pardoned
	case r.phase == search && stops:
		return overshot
	case r.phase == search:
		return overshotCheaply
	case r.phase == settled && r.rate == r.offered && !r.Unknown():
		return gentle // the server has said this rate; its bucket was empty
	case r.Unknown(), r.phase == settled && r.grown < proof && math.IsInf(r.offered, 1):
		if stops {
			return unproven
		}
		return overshotCheaply
	case r.phase == regrowth && r.rate > above*r.estimate:
		if stops {
			return followed
		}
		return followedCheaply
	case r.phase == regrowth && r.grown > r.period/2:
		return gentle
	case r.phase == regrowth:
		return r.lasted(now.Sub(r.cut.Add(r.stopped)).Seconds(), stops)
	default:
		return steep
	}
}

// lasted returns what a refusal leaves of a rate that lasted for so many seconds: the longer, the
// smaller the excess by which it emptied the bucket. If that was full after a stop, and holds d
// seconds' worth, the share is 1 / (1 + d/t).
func (r *Rate) lasted(t float64, stops bool) share {
	low := share{1 / (1 + 0.4/t), 1 / (1 + 0.25/t)}
	least := share{0.4, 0.5}
	if !stops {
		low, least = share{1 - 0.4/t, 1 - 0.25/t}, steepCheaply
	}
	return share{min(max(low.rate, least.rate), gentle.rate), min(max(low.estimate, least.estimate), gentle.estimate)}
}

// measured returns what was accepted per second since the last refusal. At both ends a bucket is
// empty, so it allows at least that; and no more, unless it was full in between. If there was a stop,
// it filled up then, somewhat: half of the stop counts.
func (r *Rate) measured(now time.Time) (perSecond float64, ok bool) {
	since := r.cut.Add(r.stopped / 2)
	d := now.Sub(since).Seconds()
	return r.accepted / d, !r.cut.IsZero() && r.accepted >= 8*r.cost && d > 0.5+r.stopped.Seconds()
}

// quota returns what a server allows that counts for as long as its stops: what was accepted between
// two refusals, over the time from the end of one stop to the end of the next. A stop of a second or
// two is rounded up, and says nothing.
func (r *Rate) quota(now, resume time.Time) (perSecond float64, ok bool) {
	stop := resume.Sub(now)
	if stop <= longStop || stop > window || r.accepted == 0 || r.row > 0 || r.sent.total == 0 {
		return 0, false
	}
	if !r.cut.IsZero() {
		return r.accepted / (now.Sub(r.cut).Seconds() - 0.5), r.stopped > longStop
	}
	return r.accepted / (resume.Sub(r.sent.first).Seconds() - 0.5), true
}
