package reserve

import "time"

// SetRate changes the rate from now on. With a capacity that is a time (pace.WithBurst, the default, and warm-up), it
// keeps promised times and what is owed: at 1/s, after Acquire(8), SetRate(2) leaves the next caller waiting the same 8
// s, and the caller behind it 8.5 s. Stored permits scale with the capacity. With a capacity in permits
// (pace.WithCapacity, pace.NewTokenBucket), and after a Retime, it is [Limiter.Retime]. +Inf means no limit. Package
// window has its own rule.
//
// For a rate that is not positive it returns a *[ValueError] and changes nothing.
func (l *Limiter) SetRate(permitsPerSecond float64) error {
	if err := checkRate(permitsPerSecond); err != nil {
		return err
	}
	l.engine().SetRate(permitsPerSecond)
	return nil
}

// Retime changes the rate from now on, for waiting requests too, as a server's limit changes. It keeps permits:
// remaining waits and the debt are multiplied by the old rate over the new, and stored permits stay as far as they fit.
// At 1/s, after Acquire(8), Retime(2) makes the next caller wait 4 s and the caller behind it 4.5 s. A warming-up
// limiter stays as cold as it is.
//
// A lower rate makes promised times later, and a waiting caller whose deadline no longer fits gives up. From then on
// [Limiter.SetRate] and [Limiter.SetPolicy] are Retime too. Its error is SetRate's.
func (l *Limiter) Retime(permitsPerSecond float64) error {
	if err := checkRate(permitsPerSecond); err != nil {
		return err
	}
	l.engine().Retime(permitsPerSecond)
	return nil
}

// SetPolicy replaces the policy from now on by another of the same kind: its rate, store or window, cold factor,
// longest wait and slack, but not its [WithStored]. It keeps times or permits as [Limiter.SetRate] does, by the policy
// before: at 10/s, 6 of 10 stored permits stay 6 under pace.WithCapacity(20). Stored permits that do not fit are gone,
// and requests that wait for a pause to end, or upfront, may become later by those.
//
// If the policy is nil, of another kind, has another clock or pays in another way, it returns a *[ValueError] and
// changes nothing.
func (l *Limiter) SetPolicy(p *Policy) error {
	want := l.engine().SetPolicy(p.engine())
	switch {
	case want == "":
		return nil
	case p == nil:
		return valueError("SetPolicy's policy", nil, want)
	}
	return valueError("SetPolicy's policy", "of "+p.engine().Terms().Limiter, want)
}

// PauseUntil stops the limiter's clock until t. All times still to come move by the pause, and no permits are stored. A
// waiting caller whose deadline no longer fits gives up at once. A later PauseUntil extends the pause; an earlier t
// changes nothing.
//
// Paused for 2 s, a limiter at 10/s serves callers due in 100 and 200 ms in 2.1 and 2.2 s.
func (l *Limiter) PauseUntil(t time.Time) { l.engine().PauseUntil(t) }

// Resume ends a pause now. Times still to come become earlier by the rest of it.
func (l *Limiter) Resume() { l.engine().Resume() }
