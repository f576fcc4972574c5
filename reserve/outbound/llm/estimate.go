package llm

import (
	"math"
	"sync"
)

// A ratio is how much calls have come to, of what was estimated: a mean of the last fifty or so,
// weighted by their size.
//
// Before anything is known it is 2: too low an estimate is refused by the server, too high a one is
// corrected when the call ends. After three calls that came to what was estimated it is 1.1, after
// ten 1.01; after any that came to twice as much it is 2.
type ratio struct {
	mu              sync.Mutex
	calls           float64
	used, estimated float64
	spread          float64 // sum of the squares of what calls came to beside the mean, in estimates
}

const (
	forget = 0.98 // what a call weighs when another one has come
	// A call tells nothing more than that it was this far off.
	mostOff = 20.0
	caution = 3.0 // standard deviations
)

// learn takes note of a call.
func (r *ratio) learn(estimated, used int) {
	if estimated < 1 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e := float64(estimated)
	u := math.Min(float64(used), e*mostOff)
	if r.calls > 0 {
		off := u/e - r.used/r.estimated
		r.spread = forget*r.spread + off*off
	}
	r.calls++
	r.used, r.estimated = forget*r.used+u, forget*r.estimated+e
}

// correct returns what a call of that estimate is taken to come to, while so many others have not
// come to their end: their sum is what must not be too low, so the more there are the less each
// needs to allow for.
func (r *ratio) correct(estimated, others int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	factor := 2.0
	if r.calls > 0 {
		proof := r.calls * r.calls
		factor = (proof*r.used/r.estimated + 2) / (proof + 1)
		weight := (1 - math.Pow(forget, r.calls)) / (1 - forget)
		factor += caution * math.Sqrt(r.spread/weight/float64(1+others))
	}
	return int(math.Min(math.Ceil(float64(estimated)*factor-1e-6), maxTokens*mostOff))
}
