package outbound

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/nextfree/pace/internal/isnil"
	lim "github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve"
)

// A way is what a call asks of its limits at one upstream, or at the only server.
type way struct {
	upstream *upstream     // nil: there are none
	subject  *http.Request // for the limits; nil: the upstream does not serve it
	charges  charges       // the caller's limits, then learned ones
	own      int           // the number of the caller's
	seats    charges       // the limits on calls in flight
	planned  plan
	gates    int       // where they begin in what its place asks
	failed   time.Time // when an attempt went out that the upstream failed to serve; zero: none
	refused  bool      // the upstream has refused the call, or failed to serve it
	large    bool      // a limit is too small for the call
	part     *part     // of the requests, with its own rules; nil: none
}

// ways are one for each upstream, or for the only server.
type ways []way

// served yields the ways of upstreams that serve the call.
func (ws ways) served(yield func(int, *way) bool) {
	for i := range ws {
		if ws[i].subject != nil && !yield(i, &ws[i]) {
			return
		}
	}
}

// charges yields those of the ways of served.
func (ws ways) charges(yield func(*charge) bool) {
	for _, w := range ws.served {
		for a := range w.charges.all {
			if !yield(a) {
				return
			}
		}
	}
}

func (c *call) prepare() error {
	if u := c.t.upstreams; u != nil {
		c.ways = make(ways, len(u.all))
	}
	served := false
	for i := range c.ways {
		w := &c.ways[i]
		if w.subject = c.request; c.t.upstreams != nil {
			w.upstream = c.t.upstreams.all[i]
			if w.upstream.Prepare != nil {
				w.subject = w.upstream.Prepare(c.caller)
			}
		}
		served = served || w.subject != nil
	}
	if !served {
		return valueError("the request", c.request.URL, "one that an upstream serves")
	}
	return c.chargeWays()
}

func (c *call) chargeWays() error {
	for _, w := range c.ways.served {
		if err := c.chargeWay(w); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) chargeWay(w *way) error {
	t, own := c.t, w.upstream
	w.charges, w.seats, w.part = w.charges[:0], w.seats[:0], t.partOf(w.subject)
	holds := holding(w.subject)
	for i := range t.inFlight {
		if l := &t.inFlight[i]; holds(l) && l.cost(w.subject) > 0 {
			key, _ := l.scope(w.subject)
			c.sit(w, l, key, nil)
		}
	}
	for i := range t.limits {
		if l := &t.limits[i]; holds(l) {
			if err := c.chargeLimit(w, l, l.cost(w.subject)); err != nil {
				return err
			}
		}
	}
	if own != nil && len(w.charges) == 0 {
		c.charge(w, &t.limits[0], own.number, own.By, 1)
	}
	w.own = len(w.charges)
	c.plan(w)
	return nil
}

func (c *call) chargeLimit(w *way, l *limit, permits int) error {
	if own := w.upstream; l.upstream {
		if own.limited || own.Prepare == nil {
			c.charge(w, l, own.number, own.By, max(1, permits)) // it has to go to one of them
		}
		return nil
	}
	if permits <= 0 {
		return nil
	}
	key, by := l.scope(w.subject)
	if isnil.Value(by) {
		return valueError("the limiter of "+fmt.Sprint(key), nil, "a Reserver")
	}
	if lim.Of(by).Traits().InFlight {
		c.sit(w, l, key, by)
	} else {
		c.charge(w, l, key, by, permits)
	}
	return nil
}

// changed reports whether the limits of the request differ from the limits that it was charged for.
func (w *way) changed(limits []limit) bool {
	for i := range limits {
		l := &limits[i]
		of := func(a *charge) bool { return a.limit == l }
		switch {
		case w.charges.find(of) != nil:
		case w.seats.find(of) != nil:
			if l.cost(w.subject) < 1 {
				return true
			}
		case l.again != nil && l.cost(w.subject) > 0:
			return true
		}
	}
	return false
}

// changes reports whether changed may become true, or a cost.
func (w *way) changes() bool {
	again := func(a *charge) bool { return a.limit.again != nil }
	gate := func(a *charge) bool { return a.limit.places == 0 }
	return w.charges.find(again) != nil || w.seats.find(gate) != nil
}

// fits reports whether the way's limiters can ever hold the call's cost.
func (w *way) fits() bool {
	return w.charges.find(func(a *charge) bool {
		most := lim.Most(a.of)
		return most > 0 && float64(a.Permits) > most
	}) == nil
}

func (w *way) dearest() (most *charge) {
	for a := range w.charges.all {
		if most == nil || a.Permits > most.Permits {
			most = a
		}
	}
	return most
}

func (c *call) charge(w *way, l *limit, key any, by reserve.Reserver, permits int) {
	w.charges = append(w.charges, charge{By: by, of: lim.Of(by), Permits: permits, limit: l, key: key})
	c.t.use(&w.charges[len(w.charges)-1], w.subject, &c.states)
}

// use finds what is known of a charge's limit and key. Each state is in states once.
func (t *Transport) use(a *charge, subject *http.Request, states *[]*limitState) {
	t.watchState(a, subject, states)
	a.rate = t.controllerOf(a)
	if a.state.rate.Store(a.rate); a.rate != nil {
		a.even = a.rate.even
	} else {
		a.believe()
	}
	if by, ok := a.By.(*reserve.Limiter); ok && reserve.Reserver(by) != a.state.by {
		a.restop(t.now()) // the key has another limiter than before
	}
}

// sit adds a limit on calls in flight, with places of its own or of the transport's (nil).
func (c *call) sit(w *way, l *limit, key any, places reserve.Reserver) {
	a := charge{By: places, Permits: 1, limit: l, key: key}
	if places == nil {
		c.t.watchState(&a, w.subject, &c.states)
		a.By = a.state.by
	}
	a.of = lim.Of(a.By)
	w.seats = append(w.seats, a)
}

// controllerOf returns a limiter's controller. Keys with the same *reserve.Limiter share it: two would take each
// other's cuts for ceilings. Other limiters may be made for each request, so theirs is the key's. A limit that is
// costed again while its calls wait (package llm's) is told by responses, and its limiter is set then.
func (t *Transport) controllerOf(a *charge) *controller {
	asked := t.adaptive || a.limit.adaptive
	if a.limit.upstream || asked && !a.of.Traits().Tunable || !asked && (a.limit.again != nil || !lim.Unlimited(a.of)) {
		return nil
	}
	var key any = keys{a.limit, a.key}
	if shared := lim.Local(a.of); shared != nil {
		key = shared
	}
	c := t.controllers.GetOr(key, func() *controller { return newController(a.of, asked).spaced(t.unlimited) })
	c.follow()
	return c
}

// roomOf returns the room of a limit; nil if it has a rate, or one is being found and no window is known.
func (a *charge) roomOf() *room {
	if rate := a.of.Rate(); rate == 0 || a.rate == nil && !math.IsInf(rate, 1) {
		return nil
	}
	if window := a.said != nil && a.said.Ends > 0; a.state.room.Load() == nil && (a.rate == nil || window) {
		a.state.room.CompareAndSwap(nil, newRoom())
	}
	return a.state.room.Load()
}

// pauseOf returns the limiter whose pause stops a limit as well; nil: none.
func (t *Transport) pauseOf(a *charge) *reserve.Limiter {
	if a.limit.upstream {
		return t.upstreams.all[a.key.(int)].pause
	}
	if a.limit.places > 0 || a.of.Traits().Stops {
		return nil
	}
	return t.unlimited.Limiter()
}

func (t *Transport) watchState(a *charge, subject *http.Request, states *[]*limitState) {
	if a.state = t.stateOf(a, subject); slices.Contains(*states, a.state) {
		a.state.users.Add(-1)
		return
	}
	*states = append(*states, a.state)
}

// stateOf returns the state of a limit and a key, for a user more.
func (t *Transport) stateOf(a *charge, r *http.Request) *limitState {
	key, states := keys{a.limit, a.key}, &t.states
	states.mu.Lock()
	defer states.mu.Unlock()
	s := states.of[key]
	if s == nil {
		if len(states.of) >= max(states.sweep, idleStates) {
			states.forget(t.now())
			t.lines.forget()
		}
		s = &limitState{
			name: a.name(), key: shownKey(a.key, r), by: a.By, of: a.of,
			places: a.limit.places, pause: t.pauseOf(a),
		}
		if s.places > 0 {
			s.seats = queue.NewPlaces(s.places)
			s.by, s.of = s.seats, s.seats
		}
		states.of[key] = s
	}
	s.users.Add(1)
	return s
}
