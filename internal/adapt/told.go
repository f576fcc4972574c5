package adapt

import (
	"math"
	"math/bits"
	"time"
)

// A Told finds what a server makes of a limit that its user was told: so many permits per second, and so many at once.
// The rate is kept: the law takes 8 % at most. What may go at once is a guess about how the server counts, so a refusal
// of calls within the told rate gives it up: what was accepted of it is what goes at once from then on. A little more
// is tried, twice as much each time, after 8 s or five stops. A trial that is refused is undone, and the next one comes
// after twice the time.
//
// A stop of more than a second that lasts half of the told period, or longer, says that the server counts in windows.
// What may go at once stays, unless the limit is told as a window: calls within it use up none of the server's.
//
// [NewTold] makes it. It is not safe for concurrent use.
type Told struct {
	rate    float64 // permits per second, as told
	most    float64 // permits at once, as told
	counted bool    // as a window
	law     *Rate   // nil: nothing was refused

	sent, taken drain
	event       time.Time // the latest refusal of a call sent after the one before
	evenly      bool      // its refused calls were not sent at once
	open        bool      // answers to calls sent before the event still raise takes

	takes  float64       // permits at once; most: as told
	call   float64       // permits of the call that the event refused
	before float64       // takes before a trial that has not been used yet; 0: none
	step   float64       // of the next trial
	wait   time.Duration // between trials
	next   time.Time     // the earliest trial

	window time.Time // the latest stop that is a window's

	gap     float64 // seconds between calls, beside the interval: for what arrives less evenly than it was sent
	since   int     // calls accepted since the event
	run     int     // calls accepted before it grew
	shrinks time.Time
	widens  time.Time // not before

	latest uint64 // answers, the last one lowest: 1 for a refusal
	calls  int    // answered, at most lately
	serves meter  // what is accepted

	mean, off float64 // of the time that answers take, in seconds: a running mean, the mean distance from it
	answers   float64
}

const (
	firstTrial = 8 * time.Second
	fewTrial   = 20   // calls, at least, until the first trial
	perTrial   = 5    // stops, at least, until the first trial
	trials     = 32   // the first step is this part of most
	together   = 1.25 // calls in use: they went at once
	quick      = 10   // calls between events: the server is nearer than the law's steps
	unevenly   = 4    // mean distances: all that jitter brings
)

// NewTold returns a belief in a limit as told: permits per second and at once, perhaps counted in a rolling window.
func NewTold(rate, burst float64, window bool) *Told {
	burst = max(1, burst)
	return &Told{rate: rate, most: burst, takes: burst, counted: window}
}

// Rate returns the told permits per second.
func (t *Told) Rate() float64 { return t.rate }

// Keeps reports whether as many may go at once as was told.
func (t *Told) Keeps() bool { return t.takes >= t.most }

// Pace returns how fast calls may go, how many permits may be saved up, and whether that is less than told.
func (t *Told) Pace() (rate, saved float64, less bool) {
	rate = t.rate
	if t.law != nil {
		rate = t.law.Now()
	}
	less = rate < t.rate || t.gap > 0 || !t.Keeps()
	return 1 / (1/rate + t.gap), max(0, t.takes-t.call), less
}

const lately = 50 // calls

// Misfit reports whether more than half of the latest 50 calls were refused: the told limit does not fit the server. It
// returns about what the server takes: permits at once, and per second.
func (t *Told) Misfit(now time.Time) (takes, rate float64, misfit bool) {
	refused := bits.OnesCount64(t.latest & (1<<lately - 1))
	return t.takes, min(t.rate, t.serves.perSecond(now)), t.calls == lately && 2*refused > lately
}

func (t *Told) answer(refused uint64) {
	t.latest, t.calls = t.latest<<1|refused, min(t.calls+1, lately)
}

// Sent counts a call that goes out now, and returns the permits in use at the told rate, with its own.
func (t *Told) Sent(now time.Time, permits float64) (inUse float64) {
	if t.law != nil {
		t.law.Sent(now, permits)
	}
	return t.sent.add(t.rate, now, permits)
}

// Accepted counts an accepted call, sent then.
func (t *Told) Accepted(now, sent time.Time, permits float64) {
	if t.law != nil {
		t.law.Accepted(now, sent, permits)
	}
	t.answered(now.Sub(sent).Seconds())
	t.answer(0)
	t.serves.add(now, permits)
	level := t.taken.add(t.rate, sent, permits)
	if !sent.After(t.event) {
		if t.open {
			t.takes = max(t.takes, t.proves(level, permits))
		}
		return
	}
	t.since++
	if t.gap > 0 && now.After(t.shrinks) {
		t.gap, t.shrinks = t.gap*3/4, now.Add(PerStop*time.Second)
		if t.gap*t.rate < least {
			t.gap = 0
		}
	}
	if t.takes < t.most && level > t.takes-permits {
		t.try(now)
	}
}

// try lets a little more go at once, when what may go has been used and accepted.
func (t *Told) try(now time.Time) {
	t.before = 0
	if now.Before(t.next) {
		return
	}
	t.before = t.takes
	t.takes = min(t.most, t.takes+t.step)
	t.step, t.next = 2*t.step, now.Add(t.wait)
}

// Refused counts a refused call, sent then with so many permits in use; calls stop for so long. busy means a 5xx. It
// returns for how long nothing may be saved up.
func (t *Told) Refused(
	now, sent time.Time, stop time.Duration, permits, inUse float64, busy bool,
) (hold time.Duration) {
	if t.law == nil {
		law := Known(t.rate)
		law.Sent(sent, permits)
		t.law = &law
	}
	lowest := t.law.Now() <= (1+least)*t.law.floor
	t.law.Refused(now, sent, now.Add(stop), false)
	t.answered(now.Sub(sent).Seconds())
	t.answer(1)
	t.sent.level = max(0, t.sent.level-permits) // the server does not count it
	accepted, atOnce := t.taken.add(t.rate, sent, 0), inUse > together*permits && !(busy && stop == 0)
	if !sent.After(t.event) {
		if atOnce && t.evenly && !t.inWindows(now, stop) {
			t.giveUp(now, stop, permits, accepted)
		}
		return stop
	}
	first, calls := t.event.IsZero(), t.since
	t.event, t.since, t.open, t.call, t.evenly = now, 0, false, permits, !atOnce
	switch {
	case !first && calls == 0 && stop == 0 && !busy: // as a window does that is used up: what was accepted must leave it
		return time.Duration(accepted / t.rate * float64(time.Second))
	case atOnce && t.inWindows(now, stop):
		return 0
	case atOnce:
		t.giveUp(now, stop, permits, accepted)
	case !busy && (lowest || !first && stop > 0 && calls < quick):
		t.widen(now, calls)
	}
	return stop
}

// inWindows reports whether a stop says that the server counts in windows. If it says so again within ten, that is no
// reason to keep the burst.
func (t *Told) inWindows(now time.Time, stop time.Duration) bool {
	window := t.most / t.rate
	if t.counted || stop <= time.Second || stop.Seconds() < window/2 ||
		!t.window.IsZero() && now.Sub(t.window).Seconds() < 10*window {
		return false
	}
	t.window = now
	return true
}

func (t *Told) giveUp(now time.Time, stop time.Duration, permits, accepted float64) {
	proven := t.proves(accepted, permits)
	switch {
	case t.before > 0:
		t.takes, t.before = t.before, 0
		t.wait = min(4*t.wait, remembered)
	case t.takes < t.most:
		t.takes = min(proven, t.takes/2)
	default:
		t.takes, t.open = proven, true
		t.wait = max(firstTrial, perTrial*stop, time.Duration(fewTrial*permits/t.rate*float64(time.Second)))
	}
	t.takes, t.evenly = max(1, t.takes), false
	t.step, t.next = max(1, t.most/trials), now.Add(stop+t.wait)
}

// proves returns what surely goes at once if so much was accepted: a call less, and less what arrives early.
func (t *Told) proves(accepted, permits float64) float64 {
	early := unevenly * t.off * t.rate
	return max(1, accepted-permits-min(early, accepted/2))
}

// widen allows for jitter after so many calls: it doubles the interval, or what it has allowed for, up to all of the
// jitter. If calls are refused nearly as soon all the same, it was something else.
func (t *Told) widen(now time.Time, calls int) {
	jitter, twice := unevenly*t.off, 2/t.rate-1/t.law.Now()
	switch {
	case 4*jitter < 1/t.rate || now.Before(t.widens):
	case t.gap > 0 && 2*t.gap > jitter && calls < max(quick, 2*t.run):
		t.gap, t.widens = 0, now.Add(remembered)
	default:
		t.run = calls
		t.gap, t.shrinks = min(max(twice, 2*t.gap), jitter), now.Add(PerStop*time.Second)
	}
}

func (t *Told) answered(took float64) {
	t.answers = min(t.answers+1, 16)
	t.mean += (took - t.mean) / t.answers
	t.off += (math.Abs(took-t.mean) - t.off) / t.answers
}

// Blocked counts the end of a block: see [Rate.Blocked].
func (t *Told) Blocked(now time.Time, lasted time.Duration) {
	if t.law != nil {
		t.law.Blocked(now, lasted)
	}
}

// A drain holds permits that leave it at a rate.
type drain struct {
	level float64
	at    time.Time
}

func (d *drain) add(rate float64, at time.Time, permits float64) (level float64) {
	if passed := at.Sub(d.at); passed > 0 {
		d.level, d.at = max(0, d.level-rate*passed.Seconds()), at
	}
	d.level += permits
	return d.level
}
