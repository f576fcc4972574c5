package outbound

import (
	lim "github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

type keys struct{ limit, key any }

// A charge is what an attempt asks of one limit: permits, or a place in flight.
type charge struct {
	By      reserve.Reserver
	of      lim.Limit            // By
	Permits int                  // at least 1
	Held    *reserve.Reservation // nil: not granted
	spacing *reserve.Reservation // of even

	limit  *limit
	key    any
	state  *limitState
	rate   *controller      // nil: not adaptive
	belief *belief          // of a told limit; nil: it is adaptive
	even   *reserve.Limiter // spaces its calls; nil: they go as told
	inUse  float64          // of the limit's permits, when the call was sent
	place  *queue.Place     // its shares are of this limit's permits; nil: of another's, or there are no classes

	evenAt    int          // even's index in what its place asks
	said      *reply.Limit // by the response; nil: nothing
	named     bool         // by the response only: the call was not paced by it
	chance    bool         // a refusal would be by chance
	tooLittle bool         // is left, as the response says: see tooLittleLeft
	ruling    ruling
}

type charges []charge

func (cs charges) all(yield func(*charge) bool) {
	for i := range cs {
		if !yield(&cs[i]) {
			return
		}
	}
}

// find returns the first charge that is so; nil: none is.
func (cs charges) find(so func(*charge) bool) *charge {
	for a := range cs.all {
		if so(a) {
			return a
		}
	}
	return nil
}

// last returns the last charge that is so; nil: none is.
func (cs charges) last(so func(*charge) bool) (a *charge) {
	for each := range cs.all {
		if so(each) {
			a = each
		}
	}
	return a
}

// named returns the charge of a limit's name; nil: none, or the name is empty.
func (cs charges) named(name string) *charge {
	return cs.find(func(a *charge) bool { return a.limit.name == name && name != "" })
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
	of.pay(used)
	of.correct(used)
	if hook := a.t.hooks.Settled; hook != nil {
		hook(a.request, of.name(), of.Permits, used)
	}
}

// keep leaves a charge at its estimate, and charges what the limit could not hold at once.
func (a *charge) keep() {
	if a.Held.Permits() < a.Permits {
		a.pay(a.Permits)
	}
}

func (a *charge) pay(used int) {
	a.Held.Settle(used)
	if a.spacing != nil {
		a.spacing.Settle(used)
	}
}
