package shared

import (
	"cmp"
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/saturate"
)

// write puts a list of requests into the order. What they ask for beside permits is done once for all.
func (o *order) write(list []*request, now int64) {
	for _, r := range list {
		o.touch = o.touch || r.touch
		if r.pause != 0 {
			o.pause = float64(r.pause)
		}
		if r.refund != nil {
			if o.terms.book != nil {
				o.refunds = append(o.refunds, comeback{number: r.refund.slot.number, kept: float64(r.refund.permits)})
			} else {
				o.refunds = append(o.refunds, r.refund.comeback(o.terms))
			}
		}
		if r.permits > 0 {
			limit := r.maxWait
			if r.deadline != never {
				limit = max(-1, min(limit, r.deadline-now))
			}
			o.asked = append(o.asked, wanted{float64(r.permits), float64(limit)})
		}
	}
}

// give puts the answer into the requests. The keeper decided at the given time of the limiter's. It returns the state
// after all of them.
func (o *order) give(list []*request, decided int64) state {
	if o.terms.book != nil {
		return o.giveOfBook(list, decided)
	}
	now, waits := o.state, o.waits
	for _, r := range list {
		r.seen = o.state
		if r.permits == 0 {
			continue
		}
		wait := waits[0]
		waits = waits[1:]
		if r.granted = wait >= 0; !r.granted {
			r.wait = toWait(-1 - wait)
			continue
		}
		r.wait = toWait(wait)
		r.ready = saturate.Add(decided, r.wait)
		// These are the keeper's steps again: that saves sending their results.
		r.slot = slot{sold: now.time, permits: r.permits, terms: o.terms}
		taken, cost := o.terms.curve.Price(now.stored, float64(r.permits))
		due := now.debt
		if o.terms.upfront {
			due += cost
		}
		if r.wait == 0 && roundUp(due) > 0 { // what was deferred
			r.slot.deferred = true
			now.deferred -= float64(r.permits)
			continue
		}
		r.slot.begin, r.slot.stored = now.debt, now.stored
		now.stored -= taken
		now.debt = min(now.debt+cost, longest)
		if cost > 0 {
			now.slot++
			r.slot.number = now.slot
		}
	}
	for _, r := range list {
		r.after = now
	}
	return now
}

// giveOfBook is give, where the keeper says all.
func (o *order) giveOfBook(list []*request, decided int64) state {
	i := 0
	for _, r := range list {
		r.seen, r.after = o.state, o.after
		if r.permits == 0 {
			continue
		}
		wait := o.waits[i]
		if r.granted = wait >= 0; r.granted {
			r.wait = toWait(wait)
			r.ready = saturate.Add(decided, r.wait)
			r.slot = slot{number: o.numbers[i], permits: r.permits, terms: o.terms}
		} else {
			r.wait = toWait(-1 - wait)
		}
		i++
	}
	return o.after
}

// send makes the call for a list of requests, and puts an error into them if there was no answer. It returns that error
// as well, so that the waiting callers fail with it. It does not if the callers of the list only had too little time:
// others may have more.
func (l *Limiter) send(ctx context.Context, list []*request) error {
	begin, n := l.now(), l.node()
	// First it charges permits that were granted without the server, once: if the answer is lost they may have been
	// charged, and are forgotten. So it waits until a server has answered since the outage.
	charge := looks() // of the permits that are owed
	var owed int64
	if !n.circuit.troubled.Load() {
		curve := l.terms.Load().curve
		if charge.permits, owed = l.owed.take(begin, curve); charge.permits > 0 {
			// Other processes charge what they owe, too: nothing is charged if that is a capacity already.
			charge.maxWait = int64(min(curve.Capacity*curve.Interval, longest))
			list = append([]*request{charge}, list...)
		}
	}
	err := error(&UnavailableError{Key: l.key, Err: errAborted}) // unless send returns
	by := begin
	defer func() {
		if err == nil {
			return
		}
		l.report(n, err, !late(err) || !l.hasty(by-begin))
		l.fail(n, list, err)
		if !charge.charged {
			l.owed.add(owed)
		}
	}()
	by = l.until(list, begin)
	err = l.call(ctx, n, list, by)
	if err == nil {
		l.report(n, nil, true)
	} else if by-begin < int64(l.timeout) && late(err) {
		return nil
	}
	return err
}

// fail puts an error into the requests of a call, and counts the permits that the server may have granted
// nevertheless.
func (l *Limiter) fail(n *node, list []*request, err error) {
	lost := 0
	for _, r := range list {
		r.err = err
		if _, unavailable := err.(*UnavailableError); unavailable && maybeCharged(err) {
			r.charged = true
			lost += r.permits
		}
	}
	if l.mode != closed && l.owed.lose(l.now(), lost, l.terms.Load().curve) {
		n.circuit.open(l.now(), err)
	}
}

// try probes the server: it asks for nothing, until three answers have come in a row. A server that loses every other
// answer must not be trusted with permits. If the time is too short for three it fails, and the next caller asks for
// the missing ones.
func (l *Limiter) try(ctx context.Context, n *node, by int64) (err error) {
	answers, enough := 0, true
	err = &UnavailableError{Key: l.key, Err: errAborted}
	begin := l.now()
	defer func() {
		verdict := err
		if _, refused := err.(*ConfigError); refused { // that is an answer
			answers, verdict = tolerated, nil
		} else if late(err) && l.hasty(by-begin) {
			answers, verdict = 0, nil
		}
		closed := n.circuit.tried(l.now(), answers, verdict)
		if err == nil && !(closed && enough) {
			err = &UnavailableError{Key: l.key, Err: errPatience}
		}
	}()
	if reload := l.nodes.reload; reload != nil {
		reloading, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(by-begin)/2)
		reload(reloading)
		cancel()
	}
	now := l.node() // the key may be elsewhere now
	for answers < tolerated && enough {
		sent := l.now()
		if err := l.call(ctx, now, []*request{looks()}, by); err != nil {
			return err
		}
		answers++
		back := l.now()
		enough = by-back >= back-sent
	}
	return nil
}

// report tells the circuit how a call went. An error that the server has returned is an answer.
func (l *Limiter) report(n *node, err error, counts bool) {
	if _, unavailable := err.(*UnavailableError); !unavailable {
		err = nil
	}
	n.circuit.report(l.now(), err, counts)
}

// hasty reports whether a call had less than a quarter of the timeout. If such a call fails for lack of time, that says
// nothing about the server. (Without this rule callers with short deadlines open the circuit of a healthy server:
// TestTheImpatientOpenNothing.)
func (l *Limiter) hasty(had int64) bool { return had < int64(l.timeout)/4 }

// late reports whether an error is that the time was up.
func late(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errLate)
}

// timedOut adds to an error what time has passed, if that was the reason.
func timedOut(err error, after time.Duration) error {
	if e, ok := err.(*UnavailableError); ok && late(err) {
		e.Timeout = after.Round(time.Millisecond)
	}
	return err
}

// until returns how long a call that begins now may take: the timeout, or until the last of the
// callers gives up.
func (l *Limiter) until(list []*request, begin int64) int64 {
	latest := begin
	for _, r := range list {
		latest = max(latest, cmp.Or(r.by, r.deadline))
	}
	return min(latest, begin+int64(l.timeout))
}

// call sends a list to the keeper, and puts the answer into the requests.
func (l *Limiter) call(ctx context.Context, n *node, list []*request, by int64) error {
	// The list is not only the caller's, so its end must not be the list's.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(by-l.now()))
	defer cancel()
	o := orders.Get().(*order)
	defer orders.Put(o)
	o.terms = l.terms.Load()
	begin := l.now()
	for {
		sent := l.now()
		o.reset(float64(n.clock.notAfter(by)))
		o.write(list, sent)
		err := n.keeper.decide(ctx, l.key, o)
		back := l.now()
		l.counters.called(back-sent, err)
		if err != nil {
			return timedOut(failure(l.key, err), time.Duration(by-begin))
		}
		decided := n.clock.decided(int64(o.decided), sent, back)
		if o.late { // or the keeper's clock was set forward: now it is known
			if back < by {
				continue
			}
			return timedOut(&UnavailableError{Key: l.key, Err: errLate}, time.Duration(by-begin))
		}
		l.counters.requests.Add(uint64(len(list)))
		l.learn(o.give(list, decided), o.terms, sent)
		return nil
	}
}

// A serverClock maps the server's clock, in microseconds, to the limiter's.
type serverClock struct {
	mu    sync.Mutex
	known bool
	ahead int64 // what the limiter's is ahead of the server's, at most: the least that an answer has shown
}

// decided returns when the server decided, on the limiter's clock: by the fastest answer so far, so that a slow
// answer makes no promise later. If that is before the question was sent or after the answer came, one of the clocks
// was set, and the mapping begins anew.
func (s *serverClock) decided(micros, sent, back int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	server := micros * 1000
	if at := server + s.ahead; !s.known || at > back || at < sent {
		s.known, s.ahead = true, back-server
	}
	return server + s.ahead
}

// notAfter returns a time of the limiter's on the server's clock. While the mapping is not known it returns a time long
// past. The first call then only learns the time, and charges nothing if it comes late.
func (s *serverClock) notAfter(t int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known {
		return 1
	}
	return max(1, (t-s.ahead)/1000)
}
