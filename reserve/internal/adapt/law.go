package adapt

import (
	"math"
	"time"
)

// PerStop is how many times as long as a stop another refusal is avoided.
const PerStop = 25

const (
	step       = 0.1  // of the logarithm of the rate: what an event takes, and a period gives back
	shortest   = 10.  // seconds: a period has at least so many,
	calls      = 25.  // and so many calls besides
	unproven   = 0.6  // what a refusal leaves of a ceiling that nothing has proven
	hidden     = 0.33 // seconds for which a full bucket hides that a rate that grows is too high
	hiddenBare = 0.11 // the same where a refusal brings no stop, so that it is cheap to be wrong
	inRow      = 0.2  // of a step: what a further refusal takes, while nothing is accepted,
	mostRow    = 5    // but no more than so many steps
	proof      = 8.   // calls that were accepted tell what the server accepts
	refill     = 0.25 // of a stop of at most 2 s: so much of it fills a bucket, on a guess
	guesses    = 4    // events that follow a search, until there is a proof
	halving    = 3    // refusals, with nothing accepted: the rate is halved until something is
)

// event is the last event of refusal.
type event struct {
	at       time.Time
	stopped  time.Duration // the stop that it brought
	after    float64       // the rate that it left
	proven   bool          // a call that was sent after it was accepted
	accepted float64       // permits since
	row      int           // refusals since, while nothing was accepted
	blind    float64       // what the rate is multiplied by until something is
	guesses  int           // events that may follow before the rate counts as found
	penalty  float64       // seconds that a period has at least, because of stops
}

func (e *event) happened() bool { return !e.at.IsZero() }

// ran returns for how many seconds calls went since the last event.
func (e *event) ran(sent time.Time) float64 { return max(0, sent.Sub(e.at.Add(e.stopped)).Seconds()) }

// measured returns what was accepted per second since the last event; 0: too little to tell. Without a
// stop a bucket was empty at both ends, so that is its rate. A stop fills it in between: somewhat.
func (r *Rate) measured(sent time.Time) float64 {
	ran, enough := r.ran(sent), proof
	if r.guesses > 0 {
		enough = 2
	}
	if !r.happened() || r.accepted < enough*r.cost || ran == 0 {
		return 0
	}
	return r.accepted / math.Sqrt(ran*(ran+refill*min(r.stopped.Seconds(), 2)))
}

// period returns the seconds from one event to the next that a right rate has. It is longer where there are few calls,
// so that few of them are refused; but as a sum, so that a faster program still has more events than a slower one.
func (r *Rate) period() float64 {
	return max(shortest+calls*r.cost/r.rate, r.penalty)
}

// cut is the law for an event of refusal.
func (r *Rate) cut(now, sent time.Time, stop time.Duration) {
	rate, take := r.blame(now, sent, stop)
	low := rate * math.Exp(-take)
	if measured := r.measured(sent); measured > 0 {
		if stop > 0 && r.ran(now) < r.period()*guessing {
			low = min(low, measured)
		}
		if r.accepted >= proof*r.cost {
			low = max(low, min(measured, rate)*math.Exp(-step))
			r.guesses = 0
		}
	}
	r.remember(now, rate, low, stop)
	r.penalty = r.patience(now, stop)
	r.rate, r.searching, r.guesses = r.limit(low), false, max(0, r.guesses-1)
	r.begin(now, stop)
}

// blame returns the rate that led to a refusal, and what that takes of its logarithm.
func (r *Rate) blame(now, sent time.Time, stop time.Duration) (rate, take float64) {
	rate, take = min(r.rate, r.offered), step+float64(r.speed*hiddenBare)
	if stop > 0 {
		take = step + float64(r.speed*hidden)
	}
	if math.IsInf(rate, 1) {
		rate, r.searching = firstRate*r.cost, true
	}
	answered := r.answered.perSecond(now)
	switch {
	case r.searching: // the rate was lower when the call was sent
		rate = max(rate*math.Exp2(-now.Sub(sent).Seconds()/doubling), firstRate*r.cost/2)
		r.guesses = guesses + 1
	case answered > 0:
		rate = min(rate, max(answered, rate/2))
	}
	if r.rate >= r.ceiling && r.grown < lasting && math.IsInf(r.offered, 1) {
		take, r.guesses = -math.Log(unproven), guesses+1
	}
	return rate, take
}

// patience returns how many seconds a period has at least because of a stop: a second's worth of patience at first. Once
// another such stop has followed within 25 of its lengths, it is a penalty for this rate, and risked once in that time.
func (r *Rate) patience(now time.Time, stop time.Duration) float64 {
	long := PerStop * stop.Seconds()
	if r.ran(now) < long && r.stopped >= stop/2 {
		return long
	}
	return min(long, PerStop)
}

// begin begins a period after an event.
func (r *Rate) begin(now time.Time, stop time.Duration) {
	r.at, r.stopped, r.after = now, stop, r.rate
	r.proven, r.row, r.accepted = false, 0, 0
	r.grown, r.speed, r.last = 0, 0, now.Add(stop)
	r.answered.skip(stop)
}

// again counts a refusal after an event, before anything was accepted. It is part of the event: where a window is
// used up, a faster program has more of them. A stop, or a server that is not able to answer, says nothing of the rate.
func (r *Rate) again(stop time.Duration, unable bool) {
	if r.row++; stop == 0 && !unable && float64(r.row)*inRow <= mostRow {
		r.rate = r.limit(r.rate * math.Exp(-step*inRow))
	}
	if r.row%halving == 0 {
		r.blind /= 2
	}
}
