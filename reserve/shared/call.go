package shared

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/saturate"
)

func (l *Limiter) send(ctx context.Context, list []*request) error {
	begin, n := l.now(), l.node()
	// Not before the server has answered again: a charge whose answer is lost is forgotten.
	owes := looks()
	var owed int64
	if !n.circuit.troubled.Load() {
		if owes.charge, owed = l.takeOwed(begin); owes.charge.permits > 0 {
			list = append([]*request{owes}, list...)
		}
	}
	e := l.errand(list, begin)
	err := error(&UnavailableError{Key: l.key, Err: errAborted}) // unless send returns
	defer func() {
		l.owed.sent.Add(-owed)
		if err == nil {
			return
		}
		l.report(n, err, begin)
		l.fail(n, list, err)
		if !owes.charged {
			l.owed.add(owed) // the charge did not reach the store
		}
	}()
	err = l.call(ctx, n, slices.Concat(e.refunds, list, e.buys))
	if err == nil {
		l.report(n, nil, begin)
		l.counters.requests.Add(uint64(len(list)))
		l.stock.answered(list, e)
	}
	return err
}

func (l *Limiter) fail(n *node, list []*request, err error) {
	lost := 0
	for _, r := range list {
		r.err = err
		if _, unavailable := err.(*UnavailableError); unavailable && maybeCharged(err) {
			r.charged = true
			lost += r.permits + r.charge.permits
		}
	}
	if l.mode != closed && l.owed.lose(l.now(), lost, l.terms.Load().curve) {
		n.circuit.report(l.now(), err, certain) // too many answers were lost, though not in a row
	}
}

// probe asks until three answers have come in a row.
func (l *Limiter) probe(ctx context.Context, n *node) {
	err := error(&UnavailableError{Key: l.key, Err: errAborted}) // unless the client returns
	defer func() {
		_ = recover()
		if _, refused := err.(*ConfigError); refused { // that is an answer
			err = nil
		}
		n.circuit.probedWith(l.now(), err)
	}()
	if reload := l.nodes.reload; reload != nil {
		reloading, cancel := context.WithTimeout(ctx, l.timeout/2)
		reload(reloading)
		cancel()
	}
	for range tolerated {
		now := l.node() // the key may be elsewhere now
		if failed := l.call(ctx, now, []*request{looks()}); failed != nil {
			err = failed
			return
		}
	}
	err = nil
}

// report tells the circuit how a call went that began then. An error of the server is an answer.
func (l *Limiter) report(n *node, err error, begin int64) {
	if _, unavailable := err.(*UnavailableError); !unavailable {
		err = nil
	}
	failures := 1
	if late(err) && n.circuit.answered.Load() < begin {
		failures = certain
	}
	n.circuit.report(l.now(), err, failures)
}

func late(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errLate)
}

// call asks. What reaches the keeper after the timeout decides nothing, once its clock is known.
func (l *Limiter) call(ctx context.Context, n *node, list []*request) error {
	timeout := l.timeout
	if n.circuit.answered.Load() == 0 { // a connection is made, and the script loaded
		timeout *= 2
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	o := orders.Get().(*order)
	o.terms, o.now = l.terms.Load(), l.now
	by := saturate.Add(l.now(), int64(timeout))
	for {
		sent := l.now()
		o.clear(n.clock.at(by))
		o.write(list, sent, &n.clock)
		over, err := n.decide(ctx, l.key, o, timeout)
		back := l.now()
		l.counters.called(back-sent, err)
		if err != nil {
			if over {
				orders.Put(o)
			}
			return failure(l.key, err, timeout)
		}
		l.stock.took(back - sent)
		decided := n.clock.decided(o.decided, sent, o.back)
		if o.late { // or the keeper's clock was set forward: now it is known
			if back < by {
				continue
			}
			orders.Put(o)
			late := fmt.Errorf("the request reached %s %w", n.name, errLate)
			return &UnavailableError{Key: l.key, Timeout: timeout, Err: late}
		}
		o.give(list, decided)
		l.learn(o.after, sent, decided)
		orders.Put(o)
		return nil
	}
}

func (l *Limiter) learn(o outlook, sent, decided int64) {
	until := int64(0) // not sent: a caller that has read the clock before the call was may come after the answer
	if rounded := int64(1000); o.wait > rounded {
		until = sent + min(o.wait-rounded, int64(time.Second))
	}
	l.due.Store(saturate.Add(decided, o.wait))
	l.left.Store(math.Float64bits(min(max(0, o.left), math.MaxFloat64)))
	l.busy.Store(until)
	if o.queued != l.queue.order.Load() {
		l.queue.order.Store(o.queued)
	}
}

type serverClock struct {
	mu    sync.Mutex
	known bool
	ahead int64 // what the limiter's is ahead of the server's, at most: the least that an answer has shown
}

// decided returns when the server decided, on the limiter's clock, by the fastest answer since a clock was set.
func (s *serverClock) decided(server, sent, back int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := server + s.ahead; !s.known || at > back || at < sent {
		s.known, s.ahead = true, back-server
	}
	return server + s.ahead
}

func (s *serverClock) at(t int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known || t == never {
		return never
	}
	return max(1, t-s.ahead)
}
