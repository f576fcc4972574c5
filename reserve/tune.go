package reserve

import "time"

// SetRate changes the rate from now on. It changes neither promised times nor what is owed. At 1/s, after Acquire(8),
// SetRate(2) leaves the next caller waiting the same 8 s, and the one behind it waits 8.5 s. Stored permits scale with
// the capacity: with a burst of 1 s, 6 of 10 become 12 of 20 at twice the rate. After a Retime they do not grow. +Inf
// means no limit.
//
// To follow what a server allows, use [Limiter.Retime] alone, which changes the waits of waiting callers too. If
// SetRate and Retime take turns, waits add up: at 100/s with 100 callers waiting, SetRate(200) leaves the last caller's
// wait at 1 s, and Retime(100) then doubles it. Ten times in turn make it 17 minutes.
//
// A refund of what was sold before is worth as much as before, or with a capacity in permits, while something is owed
// or waits, the lesser of both rates. At 5/s with WithCapacity(10) and 1 permit owed, a request for 3 gives back 600
// ms; after SetRate(20) 150 ms.
//
// For a rate that is not positive it returns a *[ValueError] and changes nothing.
func (l *Limiter) SetRate(permitsPerSecond float64) error {
	if err := checkRate("pace", permitsPerSecond); err != nil {
		return err
	}
	l.engine().SetRate(permitsPerSecond)
	return nil
}

// Retime changes the rate from now on, for waiting requests too. It keeps permits: the debt and all remaining waits are
// multiplied by the old rate over the new, stored permits stay as far as they fit, and a refund gives back as many
// permits as before. At 1/s, after Acquire(8), Retime(2) makes the next caller wait 4 s and the one behind it 4.5 s.
// With 6 permits stored, it leaves 6. A warming-up limiter stays as cold as it is. After Retime, [Limiter.SetRate] adds
// no stored permits; waits may add up: see there.
//
// A lower rate makes promised times later. A waiting caller whose deadline no longer fits gives up. For a rate that is
// not positive it returns a *[ValueError] and changes nothing.
func (l *Limiter) Retime(permitsPerSecond float64) error {
	if err := checkRate("pace", permitsPerSecond); err != nil {
		return err
	}
	l.engine().Retime(permitsPerSecond)
	return nil
}

// SetPolicy replaces the policy from now on by another of the same kind: its rate, store or window, cold factor,
// longest wait and slack, but not its [WithStored]. It treats promises, stored permits and an earlier [Limiter.Retime]
// as [Limiter.SetRate] does: at 10/s with WithCapacity(10), 6 stored permits become 12 under a policy of
// WithCapacity(20).
//
// If the policy is nil, of another kind, has another clock or pays in another way, it returns a *[ValueError] and
// changes nothing.
func (l *Limiter) SetPolicy(p *Policy) error {
	if want := l.engine().SetPolicy(p.engine()); want != "" {
		return valueError("SetPolicy's policy", p, want)
	}
	return nil
}

// PauseUntil stops the limiter's clock until t. No request goes before t, all times still to come move by the pause,
// and no permits are stored. A request made during the pause may go from its end on. A later PauseUntil extends the
// pause, an earlier t changes nothing, and [Limiter.Resume] ends it.
//
// A waiting caller whose deadline no longer fits gives up at once, and callers behind it move up.
//
// A limiter at 10/s with callers due in 100 and 200 ms, paused for 2 s, serves them in 2.1 and 2.2 s.
func (l *Limiter) PauseUntil(t time.Time) { l.engine().PauseUntil(t) }

// Resume ends a pause now. Times still to come become earlier by the rest of it. Without a pause it does nothing.
func (l *Limiter) Resume() { l.engine().Resume() }
