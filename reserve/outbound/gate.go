package outbound

import (
	"math"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/smooth"
)

// pausable is what can be stopped until a time; *reserve.Limiter can, and keyed's.
type pausable interface{ PauseUntil(t time.Time) }

// unlimited returns the policy of limiters without a limit. They can be paused, so
// each is a gate; and given a rate, when one is known. They save up nothing, so no two
// requests are closer than the interval then. A nil clock is the real one.
func unlimited(clock clockwork.Clock) *reserve.Policy {
	var opts []reserve.Option
	if clock != nil {
		opts = append(opts, reserve.WithClock(clock))
	}
	gate := reserve.Variant{Package: "outbound", Limiter: "a gate", Curve: evenly}
	return reserve.Must(reserve.NewPolicy(gate, math.Inf(1), opts...))
}

// gateOf returns the gate of a limit whose limiter can't be paused.
func (t *Transport) gateOf(a *ask) reserve.Reserver { return t.gates.For(keys{a.limit, a.key}) }

// alone returns what one request waits at by itself until a time.
func (t *Transport) alone(until time.Time) *reserve.Limiter {
	own := t.gate.Limiter()
	own.PauseUntil(until)
	return own
}

// evenly is the curve of a limiter that saves up nothing.
func evenly(permitsPerSecond float64) *smooth.Curve {
	return &smooth.Curve{
		Rate:     permitsPerSecond,
		Interval: smooth.Interval(permitsPerSecond),
		AtRate:   evenly,
	}
}
