package shared

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/saturate"
)

// A state is the limiter's as the server answered it.
type state struct {
	time         int64 // the limiter's own, in microseconds
	stored, debt float64
	slot         int64 // the number at the end of the queue
	deferred     int64 // permits that can be had at once in spite of the debt
}

const header = 8 // integers of an answer before the requests'

// A call is one list, on its way to the server and back.
type call struct {
	args   []any
	buffer []byte
	terms  *terms
	list   []*request
}

var calls = sync.Pool{New: func() any { return new(call) }}

// write writes the arguments of the script: see limiter.lua.
func (c *call) write(now, notAfter int64) {
	var pause int64
	touch := -1.0
	for _, r := range c.list {
		if r.touch {
			touch = max(touch, r.retime)
		}
		if r.pause < 0 { // a Resume
			pause = r.pause
		}
		pause = cmp.Or(max(0, r.pause), pause)
	}
	b := doubles(c.buffer[:0], float64(notAfter), float64(pause), touch)
	header := len(b)
	for _, r := range c.list {
		if r.refund != nil {
			b = r.refund.append(b, c.terms)
		}
	}
	refunds := len(b)
	for _, r := range c.list {
		if r.permits > 0 {
			limit := r.maxWait
			if r.deadline != never {
				limit = max(-1, min(limit, r.deadline-now))
			}
			b = doubles(b, float64(r.permits), float64(limit))
		}
	}
	c.buffer = b
	c.args = append(c.args[:0], c.terms.packed, b[:header], b[header:refunds], b[refunds:])
}

// doubles appends doubles as the script unpacks them.
func doubles(b []byte, fs ...float64) []byte {
	for _, f := range fs {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(f))
	}
	return b
}

// read puts the answer into the requests. The server decided at the given time of
// the limiter's. It returns the state after all of them.
func (c *call) read(ints []int64, decided int64) (state, error) {
	if len(ints) < header {
		return state{}, fmt.Errorf("shared: an answer of %d integers", len(ints))
	}
	now := state{
		time: ints[1], slot: ints[2],
		stored: double(ints[3], ints[4]), debt: double(ints[5], ints[6]),
		deferred: ints[7],
	}
	before, waits := now, ints[header:]
	for _, r := range c.list {
		r.seen = before
		if r.permits == 0 {
			continue
		}
		if len(waits) == 0 {
			return state{}, fmt.Errorf("shared: an answer of %d integers", len(ints))
		}
		r.wait, r.granted = waits[0], waits[0] >= 0
		waits = waits[1:]
		if !r.granted {
			r.wait = forever(-1 - r.wait)
			continue
		}
		r.wait = forever(r.wait)
		r.ready = saturate.Add(decided, r.wait)
		// The script's steps again, which saves sending the numbers.
		r.slot = slot{sold: now.time, permits: r.permits, terms: c.terms}
		taken, cost := c.terms.curve.Price(now.stored, float64(r.permits))
		wait := now.debt
		if c.terms.upfront {
			wait += cost
		}
		if r.wait == 0 && wait >= 1 { // what was deferred
			r.slot.deferred = true
			now.deferred -= int64(r.permits)
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
	return now, nil
}

// longest is what the script counts to, in nanoseconds: 291 years.
const longest = 9.2e18

func forever(wait int64) int64 {
	if wait >= int64(longest) {
		return math.MaxInt64
	}
	return wait
}

// double puts together what the script took apart.
func double(whole, rest int64) float64 { return float64(whole) + float64(rest)/(1<<53) }

// fly takes a list to the server, and puts an error into its requests if there was no answer. It
// returns the error if it is not the callers' own, so that the callers behind it need not try: if
// the callers of the list only had too little time, others may have more.
func (l *Limiter) fly(ctx context.Context, list []*request) error {
	begin := l.now()
	// Permits that were granted without the server are charged first, once: if the answer is lost
	// they may have been charged, and are forgotten. So they go only to a server that has answered
	// since.
	charge := &request{deadline: never}
	var owed int64
	if !l.circuit.troubled.Load() {
		curve := l.terms.Load().curve
		if charge.permits, owed = l.owed.take(begin, curve); charge.permits > 0 {
			// Other processes charge what they owe, too: not if that is a store already.
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
		l.report(err, !late(err) || !l.hasty(by-begin))
		l.fail(list, err)
		if !charge.charged {
			l.owed.add(owed)
		}
	}()
	by = l.until(list, begin)
	err = l.send(ctx, list, by)
	if err == nil {
		l.report(nil, true)
	} else if by-begin < int64(l.timeout) && late(err) {
		return nil
	}
	return err
}

// fail gives an error to the requests of a call. Permits that the server may have granted
// nevertheless count as charged.
func (l *Limiter) fail(list []*request, err error) {
	lost := 0
	for _, r := range list {
		r.err = err
		if _, unavailable := err.(*UnavailableError); unavailable && maybeCharged(err) {
			r.charged = true
			lost += r.permits
		}
	}
	if l.mode != closed && l.owed.lose(l.now(), lost, l.terms.Load().curve) {
		l.circuit.open(l.now(), err)
	}
}

// try asks the server whether it is there, without taking anything, until three answers have come
// in a row: one that loses every other answer is not to be trusted with permits. If a server is too
// far away for three by then, it fails, and the next caller asks for those that are missing.
func (l *Limiter) try(ctx context.Context, by int64) (err error) {
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
		closed := l.circuit.tried(l.now(), answers, verdict)
		if err == nil && !(closed && enough) {
			err = &UnavailableError{Key: l.key, Err: errPatience}
		}
	}()
	if c, ok := l.client.(interface{ Reload(context.Context) }); ok {
		reloading, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(by-begin)/2)
		c.Reload(reloading)
		cancel()
	}
	for answers < tolerated && enough {
		sent := l.now()
		if err := l.send(ctx, []*request{{deadline: never}}, by); err != nil {
			return err
		}
		answers++
		back := l.now()
		enough = by-back >= back-sent
	}
	return nil
}

// report tells the circuit how a call went. Only a server that can't be asked counts: a refusal is
// an answer.
func (l *Limiter) report(err error, counts bool) {
	if _, unavailable := err.(*UnavailableError); !unavailable {
		err = nil
	}
	l.circuit.report(l.now(), err, counts)
}

// hasty reports whether a call had far less than the timeout, so that it says nothing about the
// server if that was too little.
func (l *Limiter) hasty(had int64) bool { return had < int64(l.timeout)/4 }

// late reports whether an error is that the time was up.
func late(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errLate)
}

// until returns how long a call that begins now may take: the timeout, or until the last of the
// callers gives up.
func (l *Limiter) until(list []*request, begin int64) int64 {
	latest := begin
	for _, r := range list {
		latest = max(latest, cmp.Or(r.answer, r.deadline))
	}
	return min(latest, begin+int64(l.timeout))
}

func (l *Limiter) send(ctx context.Context, list []*request, by int64) error {
	// The list is not only the caller's, so its end must not be the list's.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(by-l.now()))
	defer cancel()
	c := calls.Get().(*call)
	defer func() {
		clear(c.args)
		c.list, c.terms = nil, nil
		calls.Put(c)
	}()
	c.list, c.terms = list, l.terms.Load()
	for {
		sent := l.now()
		c.write(sent, l.clock.notAfter(by))
		if l.clocked != nil { // the tests' script is told the time
			c.args = append(c.args, l.clocked())
		}
		ints, err := l.client.EvalInts(ctx, l.script, l.key, c.args...)
		back := l.now()
		if err != nil {
			return failure(l.key, err)
		}
		if len(ints) == 0 {
			return &UnavailableError{Key: l.key, Err: fmt.Errorf("shared: an empty answer")}
		}
		decided := l.clock.decided(ints[0], sent, back)
		if len(ints) == 1 { // too late, or the server's clock was set forward: now it is known
			if back < by {
				continue
			}
			return &UnavailableError{Key: l.key, Err: errLate}
		}
		after, err := c.read(ints, decided)
		if err != nil {
			return &UnavailableError{Key: l.key, Err: err}
		}
		l.learn(after, c.terms, sent)
		return nil
	}
}

// A serverClock relates the server's clock, in microseconds, to the limiter's.
type serverClock struct {
	mu    sync.Mutex
	known bool
	ahead int64 // what the limiter's is ahead of the server's, at most: the least that an answer has shown
}

// decided returns when the server decided, on the limiter's clock: not before the
// question was sent, nor after the answer was back, and else as the fastest answer
// so far tells, so that a slow one delays nobody. A clock that was set is noticed.
func (s *serverClock) decided(micros, sent, back int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	server := micros * 1000
	if at := server + s.ahead; !s.known || at > back || at < sent {
		s.known, s.ahead = true, back-server
	}
	return server + s.ahead
}

// notAfter returns a time of the limiter's on the server's clock. While that is not known it is one
// long past: the first call only learns the time, since one that came late would be charged.
func (s *serverClock) notAfter(t int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known {
		return 1
	}
	return max(1, (t-s.ahead)/1000)
}
