package outbound

import (
	lim "github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

type keys struct{ limit, key any }

type ask struct {
	By      reserve.Reserver
	of      lim.Limit            // By
	Permits int                  // at least 1
	Held    *reserve.Reservation // nil: not granted
}

// A charge is what an attempt asks of one limit: permits, or a place in flight.
type charge struct {
	ask
	limit  *limit
	key    any
	state  *limitState
	rate   *controller      // nil: not adaptive
	belief *belief          // of a told limit; nil: it is adaptive
	even   *reserve.Limiter // spaces its calls; nil: they go as told
	inUse  float64          // of the limit's permits, when the call was sent
	room   *room            // nil: the limit has a rate
	place  *queue.Place     // its shares are of this limit's permits; nil: of another's, or there are no classes
	said   *reply.Limit     // by the response; nil: nothing
	chance bool             // a refusal would be by chance

	tooLittle bool // is left, as the response says: see tooLittleLeft
	named     bool // by the response only: the call was not paced by it
}

func (a *charge) name() string {
	if b, ok := a.key.(bucket); ok {
		return b.key.Name
	}
	return a.limit.name
}

// id tells limits and keys of a line's calls apart.
func (a *charge) id() any {
	if a.state == nil {
		return a.By
	}
	return a.state
}

func (a *attempt) settled(of *charge, used int) {
	of.Held.Settle(used)
	of.correct(used)
	if hook := a.t.hooks.Settled; hook != nil {
		hook(a.request, of.name(), of.Permits, used)
	}
}

// keep leaves a charge at its estimate, and charges what the limit could not hold at once.
func (a *charge) keep() {
	if a.Held.Permits() < a.Permits {
		a.Held.Settle(a.Permits)
	}
}
