package outbound

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/nextfree/pace/reserve"
)

// A visit is a request on its way through the transport.
type visit struct {
	t       *Transport
	request *http.Request
	ctx     context.Context
	cost    int
	key     any
	last    reserve.Reserver // the key's own
	by      reserve.Reserver // and all others
	lane    *lane            // nil: the key is not adaptive

	begin   time.Time // of the wait
	ticket  *ticket   // in the lane
	promise *reserve.Reservation
	place   place
	sent    time.Time
}

// A place is where a request waits.
type place int

const (
	inLine place = iota // for its permits
	atGate              // for the end of a stop of a key whose limiter can't be paused
	alone               // for as long as the server wanted of it: see PauseRefused
)

// visit finds out by whom a request is paced.
func (t *Transport) visit(r *http.Request, cost int) (*visit, error) {
	v := &visit{t: t, request: r, ctx: r.Context(), cost: cost}
	by := make([]reserve.Reserver, len(t.scopes))
	for i, s := range t.scopes {
		if v.key, by[i] = s(r); by[i] == nil {
			return v, &reserve.ValueError{Package: "outbound", Name: "the limiter of " + fmt.Sprint(v.key), Value: nil, Want: "a Reserver"}
		}
	}
	v.last = by[len(by)-1]
	if v.by = v.last; len(by) > 1 {
		v.by = reserve.All(by...)
	}
	if l, ok := v.last.(tunable); ok && t.adaptive {
		v.lane = t.laneOf(l, v.key)
	}
	return v, nil
}

// laneOf returns a limiter's lane. Keys that share a *reserve.Limiter share its lane: with two,
// each would take the other's cuts for a new ceiling. Other limiters may be made for each
// request, as keyed's are, so theirs is the key's.
func (t *Transport) laneOf(l tunable, key any) *lane {
	if shared, ok := l.(*reserve.Limiter); ok {
		key = shared
	}
	if known, ok := t.lanes.get(key); ok {
		return known
	}
	fresh := newLane(l, t.clock) // under no lock: it asks for the rate, and thereby perhaps a function of the caller's
	return t.lanes.getOr(key, fresh)
}

// reserve reserves, without waiting.
func (v *visit) reserve() (err error) {
	v.begin = v.t.now()
	return v.enter()
}

// reserveAgain reserves for another attempt, which may not go before resume (zero:
// whenever it is its turn).
func (v *visit) reserveAgain(resume time.Time) error {
	if resume.IsZero() {
		return v.reserve()
	}
	v.begin, v.place = v.t.now(), alone
	own := v.t.gate.Limiter()
	own.PauseUntil(resume)
	promise, err := own.ReserveWithin(v.ctx, 1, v.t.maxWait)
	v.promise = &promise
	return err
}

// enter reserves at the gate, if that is closed, or else in line.
func (v *visit) enter() (err error) {
	var promise reserve.Reservation
	switch {
	case v.gated() && !v.t.gates.TryAcquire(v.key, 1):
		v.place = atGate
		promise, err = v.t.gates.ReserveWithin(v.ctx, v.key, 1, v.t.maxWait)
	case v.lane != nil:
		v.place = inLine
		v.ticket, err = v.lane.enter(v.ctx, v.by, v.cost, v.t.maxWait)
		return err
	default:
		v.place = inLine
		promise, err = v.by.ReserveWithin(v.ctx, v.cost, v.t.maxWait)
	}
	v.promise = &promise
	return err
}

// gated reports whether the key is stopped by a gate.
func (v *visit) gated() bool {
	_, ok := v.last.(pausable)
	return !ok
}

// wait blocks until the request may be sent.
func (v *visit) wait() error {
	for {
		if err := v.await(); err != nil {
			return err
		}
		if v.place == inLine {
			if !v.gated() || v.t.gates.TryAcquire(v.key, 1) {
				break
			}
			v.promise.Cancel() // the gate was closed meanwhile, and keeps its own queue
		}
		if err := v.enter(); err != nil {
			return err
		}
	}
	v.sent = v.t.now()
	if v.lane != nil {
		v.lane.sent(v.sent)
	}
	return nil
}

// await waits where the request is.
func (v *visit) await() (err error) {
	if v.place == inLine && v.lane != nil {
		v.promise, err = v.lane.wait(v.ticket)
		return err
	}
	return v.promise.Wait(v.ctx)
}

// refused tells of a request that can't be sent.
func (v *visit) refused(err error) error {
	v.t.hooks.refused(v.request, err)
	return err
}

// send sends an attempt. If there is no response the request may still have reached the
// server, so it has cost its permits.
func (v *visit) send(r *http.Request) (response *http.Response, err error) {
	defer func() {
		if response == nil && v.lane != nil { // an error, or a panic, be it a hook's
			v.lane.fail(v.ticket)
		}
	}()
	waited := v.sent.Sub(v.begin)
	v.t.log.waited(v.sent, v.request, waited)
	v.t.hooks.waited(v.request, waited)
	return v.t.base.RoundTrip(r)
}

// stop stops the key until a time.
func (v *visit) stop(until time.Time) {
	if p, ok := v.last.(pausable); ok {
		p.PauseUntil(until)
		return
	}
	v.t.gates.For(v.key).(pausable).PauseUntil(until)
}
