package adapt

import (
	"math"
	"time"
)

// PerStop is the time between refusals, in stops.
const PerStop = 25

const (
	step       = 0.1  // of the logarithm of the rate: an event takes it, a period gives it back
	shortest   = 10.  // seconds in a period, plus PerStop calls
	unproven   = 0.6  // of an unproven ceiling remains after a refusal; a rate that falls below was cut far
	hidden     = 0.33 // seconds for which a full bucket hides that a growing rate is too high
	hiddenBare = 0.11 // the same without stops, where an error is cheap
	inRow      = 0.2  // of a step: a further refusal in a row takes it, PerStop of them at most
	proof      = 8.   // accepted calls prove a rate
	refill     = 0.25 // of a stop, up to 2 s, fills the bucket: a guess
	guesses    = 4    // events after a search, without a proof
	halving    = 3    // refusals in a row halve the pace
)

// An event is the latest.
type event struct {
	at       time.Time
	stopped  time.Duration // its stop
	after    float64       // the rate after it
	proven   bool          // a later call was accepted, or there was none
	first    time.Time     // when it was
	accepted float64       // permits, since
	row      int           // refusals in a row, since
	guesses  int           // events until the rate counts as found
	penalty  float64       // seconds: the least period, because of stops
}

func (e *event) ran(sent time.Time) float64 { return max(0, sent.Sub(e.at.Add(e.stopped)).Seconds()) }

// measured returns the permits accepted per second since the last event, or 0 if too few. A bucket was empty at both
// events, so it is the bucket's rate; a stop fills it somewhat.
func (r *Rate) measured(sent time.Time) float64 {
	ran, enough := r.ran(sent), proof
	if r.guesses > 0 {
		enough = 2
	}
	if r.at.IsZero() || r.accepted < enough*r.cost || ran == 0 {
		return 0
	}
	return r.accepted / math.Sqrt(ran*(ran+refill*min(r.stopped.Seconds(), 2)))
}

// period returns the seconds between events at a right rate. As a sum it is long for few calls, yet faster programs
// have more events.
func (r *Rate) period() float64 {
	return max(shortest+PerStop*r.cost/r.rate, r.penalty)
}

func (r *Rate) cut(now, sent time.Time, stop time.Duration) {
	rate, take := r.blame(now, sent, stop)
	low, lasted := rate*math.Exp(-take), rate
	if measured := r.measured(sent); measured > 0 {
		if stop > 0 && r.ran(now) < r.period()*brief {
			low = min(low, measured)
		}
		if r.accepted >= proof*r.cost {
			low = max(low, min(measured, rate)*math.Exp(-r.step))
			if r.guesses > 0 && r.speed > r.step { // it has grown quickly just now
				lasted = min(rate, r.accepted/r.grown*math.Exp(r.step))
			}
			r.guesses = 0
		}
	}
	low, known := r.cycled(now, stop, r.failed(now, sent, low))
	r.close()
	if known {
		r.guesses, r.right, r.rightAt, r.retry = 0, low, now, false
	} else {
		r.remember(now, lasted, low, stop)
	}
	r.penalty = r.patience(now, stop)
	r.rate, r.searching, r.guesses = r.limit(low), false, max(0, r.guesses-1)
	r.begin(now, stop)
}

// blame returns the rate that caused a refusal, and its logarithm's cut.
func (r *Rate) blame(now, sent time.Time, stop time.Duration) (rate, take float64) {
	answered, offered := r.answered.perSecond(now), r.offered
	if r.rest { // what is left of a window says little about the next one
		offered = max(offered, answered)
	}
	rate, take = min(r.rate, offered), r.step+float64(r.speed*hiddenBare)
	if stop > 0 {
		take = r.step + float64(r.speed*hidden)
	}
	if math.IsInf(rate, 1) {
		rate, r.searching = firstRate*r.cost, true
	}
	switch {
	case r.searching:
		rate = max(rate*math.Exp2(-max(0, now.Sub(sent).Seconds())/doubling), firstRate*r.cost/2)
		r.guesses = guesses + 1
	case answered > 0:
		rate = min(rate, max(answered, rate/2))
	}
	if r.rate >= r.ceiling && r.grown < lasting && math.IsInf(r.offered, 1) {
		take, r.guesses = -math.Log(unproven), guesses+1
	}
	return rate, take
}

// patience returns a stop's least period: 25 s, or 25 stops after a second stop within that time.
func (r *Rate) patience(now time.Time, stop time.Duration) float64 {
	long := PerStop * stop.Seconds()
	if r.ran(now) < long && r.stopped >= stop/2 {
		return long
	}
	return min(long, PerStop)
}

func (r *Rate) begin(now time.Time, stop time.Duration) {
	r.at, r.stopped, r.after = now, stop, r.rate
	r.proven, r.row, r.accepted = false, 0, 0
	r.grown, r.speed, r.last = 0, 0, now.Add(stop)
	r.answered.skip(stop)
}

// again counts a further refusal in a row.
func (r *Rate) again(stop time.Duration, unable bool) {
	if r.row++; stop == 0 && !unable && r.row <= PerStop && !r.imposed[tooMany].proved() {
		r.rate = r.limit(r.rate * math.Exp(-r.step*inRow))
	}
}
