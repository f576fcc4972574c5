package outbound

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/nextfree/pace/internal/adapt"
	lim "github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound/internal/bodies"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// An attempt is one sending of a call: what was granted for it, and what came back.
type attempt struct {
	t       *Transport
	request *http.Request // the call's, for hooks

	way   *way // the granted one; before that any
	place *queue.Place
	gates []*reserve.Reservation // the probes, rooms and pauses, held until the response

	phase    phase
	unsent   bool          // the base transport does not have the request yet
	outgoing *http.Request // a retry has a body of its own
	begin    time.Time     // of the wait
	sent     time.Time
	heard    time.Time
	response *http.Response // not yet the caller's
}

type phase uint8

const (
	idle    phase = iota // without permits, or settled
	granted              // with permits, not sent
	out                  // sent, not settled
)

// take hands out the reservations of the granted place, and begins their use.
func (a *attempt) take() {
	w := a.way
	if w.upstream != nil {
		a.goTo()
	}
	if a.t.classes != nil && len(w.charges) > 0 {
		w.dearest().place = a.place
	}
	for i := range w.charges {
		of := &w.charges[i]
		if of.Held = a.place.Held(i); of.even != nil {
			of.spacing = a.place.Held(of.evenAt)
		}
	}
	for i := range w.seats {
		w.seats[i].Held = a.place.Held(len(w.charges) + i)
	}
	for i, l := range a.place.Options[a.place.Option()].Limits {
		if i >= w.gates && !l.Own {
			a.gates = append(a.gates, a.place.Held(i))
		}
	}
	a.sent = a.t.now()
	for of := range w.charges.all {
		a.begins(of)
	}
}

// begins tells a limit that its permits are in use from now on.
func (a *attempt) begins(of *charge) {
	if lim.Begin(of.Held); of.limit.exact {
		lim.End(of.Held) // it counts from here
	}
	of.holdBlock(a.sent)
	if of.limit.used == nil {
		of.keep()
	}
	if of.rate != nil {
		of.rate.change(func(rate *adapt.Rate) { rate.Sent(a.sent, float64(of.Permits)) })
	} else {
		a.t.believes(of, func(told *adapt.Told) { of.inUse = told.Sent(a.sent, float64(of.Permits)) })
	}
}

// goes tells that the request goes out.
func (a *attempt) goes() {
	waited := a.sent.Sub(a.begin)
	a.t.log.waited(a.sent, a.request, waited)
	if hook := a.t.hooks.Waited; hook != nil {
		hook(a.request, waited)
	}
	a.unsent, a.phase = false, out
	a.count(1)
}

func (a *attempt) send() (err error) {
	a.goes()
	defer a.count(-1)
	a.response, err = a.t.base.RoundTrip(a.outgoing)
	switch {
	case err != nil:
		return err
	case a.response == nil:
		return valueError(fmt.Sprintf("the response of %T", a.t.base), nil, "a response or an error")
	case a.response.Body == nil:
		a.response.Body = http.NoBody
	}
	return nil
}

func (a *attempt) count(n int64) {
	for of := range a.way.charges.all {
		of.state.out.Add(n)
	}
}

func (a *attempt) read() reply.Reply {
	theirs := a.response.Request
	a.response.Request = a.outgoing // an upstream's, and not its caller's
	s := a.t.readerOf(a.way.part).Read(a.response, a.heard)
	a.response.Request = theirs
	return s
}

// deliver gives the caller the response, with the places in flight until the body is over.
func (a *attempt) deliver() *http.Response {
	response := a.response
	a.response = nil
	if w := a.way; len(w.seats) > 0 {
		b := &placedBody{seats: w.seats}
		response.Body = b.Watch(a.request.Context(), response.Body, b)
		w.seats = nil
	}
	return response
}

// end ends an attempt, also after a panic. It settles an attempt without a response at its cost. A second end does
// nothing.
func (a *attempt) end() {
	phase, w := a.phase, a.way
	a.phase = idle
	defer leave(w.seats)
	defer a.endProbes()
	defer a.closeBodies()
	switch phase {
	case granted:
		a.place.Cancel()
	case out:
		for of := range w.charges.all {
			lim.End(of.Held) // of all, before a user's Lost, which may panic
		}
		for of := range w.charges.all {
			a.lose(of)
		}
	}
}

func (a *attempt) endProbes() {
	for _, held := range a.gates {
		held.Cancel()
	}
	a.gates = nil
}

func (a *attempt) closeBodies() {
	if a.unsent {
		a.unsent = false
		bodies.Close(a.outgoing)
	}
	if a.response != nil {
		a.response.Body.Close()
		a.response = nil
	}
}

func (a *attempt) lose(of *charge) {
	if left := errors.Is(a.request.Context().Err(), context.Canceled); of.rate != nil && !left { // that says nothing
		of.rate.lost()
	}
	if of.limit.lost != nil {
		if n, known := of.limit.lost(a.way.subject); known {
			a.settled(of, n)
			return
		}
	}
	of.keep()
}
