package outbound

import (
	"math"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/bykey"
	"github.com/nextfree/pace/reserve/internal/engine"
	"github.com/nextfree/pace/smooth"
)

type pausable interface{ PauseUntil(t time.Time) }

// stop lets nothing go before a time: queued calls keep their distances.
func (t *Transport) stop(a *charge, until time.Time) {
	a.state.stopped.Store(until.UnixNano())
	switch by := a.By.(type) {
	case *reserve.Limiter:
		(*engine.Limiter)(by).Stop(until)
	case bykey.Key:
		by.Stop(until)
	case pausable:
		by.PauseUntil(until)
	default:
		if member, ok := a.key.(int); ok && a.limit.upstream {
			t.upstreams.all[member].pause.PauseUntil(until)
			return
		}
		t.pauserOf(a).(pausable).PauseUntil(until)
	}
}

// pauserOf returns an unlimited limiter beside one that can't be paused; each call reserves a permit there.
func (t *Transport) pauserOf(a *charge) reserve.Reserver { return t.pausers.For(keys{a.limit, a.key}) }

// unlimited returns the policy of unlimited limiters, which save up nothing. A nil clock is the real one.
func unlimited(clock clockwork.Clock) *reserve.Policy {
	var opts []reserve.Option
	if clock != nil {
		opts = append(opts, reserve.WithClock(clock))
	}
	variant := reserve.Variant{Package: "outbound", Limiter: "a limiter without a limit", Curve: evenly}
	return reserve.Must(reserve.NewPolicy(variant, math.Inf(1), opts...))
}

func evenly(permitsPerSecond float64) *smooth.Curve {
	return &smooth.Curve{
		Rate:     permitsPerSecond,
		Interval: smooth.Interval(permitsPerSecond),
		AtRate:   evenly,
	}
}
