package shared

import (
	"cmp"
	"context"
	"sync"

	"github.com/nextfree/pace/internal/saturate"
)

type keeper interface {
	// decide decides an order at most once, and fills in the answers; after o.notAfter only the time.
	decide(ctx context.Context, key string, o *order) error
}

// An order is what one call asks, and its answer. Times are Unix nanoseconds on the keeper's clock.
type order struct {
	terms    *terms
	notAfter int64
	next     *terms // the terms from now on, if SetRate changes them; or nil
	pause    int64  // nanoseconds from now; resume, reset, or 0: none of these
	stop     bool   // the pause is a stop
	refunds  []refund
	charges  []charge
	uses     []useAged
	asked    []wanted

	decided int64        // when, on the keeper's clock
	back    int64        // when it was known here, on the limiter's
	now     func() int64 // the limiter's clock
	late    bool         // it was after notAfter: there is no more to the answer
	after   outlook
	answers []answer // to what was asked
	buffer  []byte   // the keeper's
}

// A wanted is a request for permits within limit.
type wanted struct {
	permits int
	limit   int64 // nanoseconds; negative: the caller's time is up
	by      int64 // on the keeper's clock: if it is decided later, its caller will have left
	look    bool  // the answer says how long as many would wait after the order
	uses    bool  // the asking process tells when uses begin and end
}

type answer struct {
	granted bool
	wait    int64 // nanoseconds
	unsure  bool  // a use may make it longer: when it is over, the request asks again
	slot    slot
	again   int64 // how long as many would wait now
}

// A charge is permits used age nanoseconds ago. With bounded charges at most mostOwed capacities are owed.
type charge struct {
	permits int
	age     int64
	bounded bool
}

const mostOwed = 2 // as in machine.lua

type outlook struct {
	stored float64 // permits
	level  float64 // the same, but negative while permits are owed: see [Snapshot]
	left   float64 // permits that may be used at once
	wait   int64   // of a request for one permit, in nanoseconds
	queued bool    // a permit is owed: callers may have to queue, and their order matters
}

const resume, reset = -1, -2

var orders = sync.Pool{New: func() any { return new(order) }}

func (o *order) clear(notAfter int64) {
	o.notAfter, o.next, o.pause, o.stop = notAfter, nil, 0, false
	o.uses = o.uses[:0]
	o.refunds, o.charges, o.asked, o.answers = o.refunds[:0], o.charges[:0], o.asked[:0], o.answers[:0]
}

func (o *order) write(list []*request, now int64, clock *serverClock) {
	for _, r := range list {
		if r.terms != nil {
			o.next = r.terms
		}
		if r.pause != 0 {
			o.pause, o.stop = r.pause, r.stop
		}
		if r.refund != nil {
			o.refunds = append(o.refunds, *r.refund)
		}
		if r.use != nil {
			o.uses = append(o.uses, useAged{r.use.record, now - r.use.at, r.use.over})
		}
		if r.charge.permits > 0 {
			o.charges = append(o.charges, r.charge)
		}
		if r.permits > 0 {
			o.asked = append(o.asked, r.wanted(now, clock))
		}
	}
}

func (r *request) wanted(now int64, clock *serverClock) wanted {
	w := wanted{r.permits, r.maxWait, clock.at(cmp.Or(r.by, never)), r.look, r.uses}
	if r.deadline != never {
		w.limit = max(-1, min(w.limit, r.deadline-now))
	}
	return w
}

func (o *order) give(list []*request, decided int64) {
	answers, refunds := o.answers, o.refunds
	for _, r := range list {
		r.after = o.after
		if r.refund != nil {
			r.ready, refunds = saturate.Add(decided, refunds[0].wait), refunds[1:]
		}
		if r.permits > 0 {
			r.answer, answers = answers[0], answers[1:]
			r.ready = saturate.Add(decided, r.wait)
		}
	}
}
