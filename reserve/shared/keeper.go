package shared

import (
	"context"
	"math"
	"sync"
)

// A keeper keeps the states of limiters and decides lists of requests on them: Redis by the script, a [Store] by the
// same arithmetic in Go. All above it, queue, circuit and fallback, is the same for both.
type keeper interface {
	// decide decides a list on the state at key, at most once, and puts the answer into it. After o.notAfter, by the
	// keeper's clock, it decides nothing, and answers only the time.
	decide(ctx context.Context, key string, o *order) error
}

// An order is what one call asks of a keeper, and its answer. Times are microseconds of the keeper's clock since 1970,
// durations are nanoseconds. All are doubles, which is what Lua has.
type order struct {
	terms    *terms
	notAfter float64
	touch    bool    // the state is written in any case: brought up to now, at this rate
	pause    float64 // so long from now; resume, reset, or 0: nothing of that
	refunds  []comeback
	asked    []wanted

	decided float64 // when
	late    bool    // after notAfter: there is no more to the answer
	state   state   // before them
	waits   []float64
	after   state     // after them, and
	numbers []float64 // their numbers: of a book only; give works out those of a curve
	buffer  []byte    // the keeper's
}

// A wanted is a request for permits, if they may be used within limit.
type wanted struct{ permits, limit float64 }

// A state is a limiter's, as far as an answer tells it.
type state struct {
	time         float64 // the limiter's own
	slot         float64 // the number at the end of the queue
	stored, debt float64
	deferred     float64 // permits that may be used at once in spite of the debt
	// Of a book: what is stored, less what requests wait for. There debt is how long a request for one permit waits, and
	// again one for as many as the last that was decided.
	level, again float64
}

// A comeback is the part of a slot that a refund gives back, in today's terms.
type comeback struct {
	number, sold  float64
	begin, length float64 // the stretch of the queue, from the sale
	ready         float64 // when the request may have been granted
	kept          float64 // permits that came out of the store
	worth         float64 // permits that a nanosecond of the stretch stores
	whole         float64 // 1 if nothing is left of the slot
	most          float64 // permits that come back at most after that
}

// What is written in place of a pause to end one, and to make the state that of a new limiter.
const resume, reset = -1, -2

var orders = sync.Pool{New: func() any { return new(order) }}

// longest is what is counted to, in nanoseconds: 291 years.
const longest = 9.2e18

// reset empties an order.
func (o *order) reset(notAfter float64) {
	o.notAfter, o.touch, o.pause, o.refunds, o.asked = notAfter, false, 0, o.refunds[:0], o.asked[:0]
}

// roundUp rounds a time as package smooth does: to the next whole nanosecond, but for what was rounded before.
func roundUp(nanoseconds float64) float64 { return math.Ceil(nanoseconds - 1e-3) }

// toWait returns a wait as an integer, rounded up.
func toWait(wait float64) int64 {
	if wait >= longest {
		return math.MaxInt64
	}
	return int64(roundUp(wait))
}
