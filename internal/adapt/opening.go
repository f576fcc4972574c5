package adapt

import (
	"math"
	"time"
)

// An opening is the time before the first refusal of a limit that nobody told: calls go as they come. The first refusal
// ends it. If the server accepts a call soon afterwards it is a bucket, whose rate is searched. Otherwise it counts in
// windows, or blocks for a time: what it accepted, over the time until it accepts again, is about its rate.
type opening struct {
	open   bool      // nothing was refused
	begun  time.Time // the first call was sent
	served float64   // permits before the refusal; 0: what followed is known, too
}

const (
	soon   = 2. // seconds
	gentle = 4. // calls per second, at least, after an opening
)

// Open lets calls go as they come until one is refused.
func (r *Rate) Open() { r.open = true }

func (r *Rate) close() {
	if r.open && math.IsInf(r.rate, 1) {
		r.served = r.accepted + r.cost/2
	}
	r.open = false
}

// resume begins when a call is accepted after the opening.
func (r *Rate) resume(now time.Time) {
	if now.Sub(r.at).Seconds() < soon {
		r.search(now)
	} else {
		r.rate = r.limit(max(r.served/now.Sub(r.begun).Seconds(), gentle*r.cost))
		r.searching, r.guesses, r.last = false, guesses+1, now
	}
	r.served = 0
}

func (r *Rate) search(now time.Time) {
	r.searching, r.rate, r.guesses, r.last = true, r.limit(firstRate*r.cost), 0, now
}
