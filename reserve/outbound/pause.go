package outbound

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
	"github.com/nextfree/pace/reserve/internal/keyhooks"
	"github.com/nextfree/pace/smooth"
)

// pausable is what can be stopped until a time; *reserve.Limiter can, and keyed's.
type pausable interface{ PauseUntil(t time.Time) }

// stop lets nothing of a limit go before a time: queued calls go later, at the same distances.
func (t *Transport) stop(a *charge, until time.Time) {
	switch by := a.By.(type) {
	case *reserve.Limiter:
		(*engine.Limiter)(by).Stop(until)
	case keyhooks.Limiter:
		by.Stop(until)
	case pausable:
		by.PauseUntil(until)
	default:
		if member, ok := a.key.(int); ok && t.upstreams != nil && a.limit == &t.limits[0] {
			t.upstreams.pool.PauseUntil(member, until)
			return
		}
		t.pauserOf(a).(pausable).PauseUntil(until)
	}
}

// pauserOf returns what stops a limit whose limiter can't be paused: a limiter without a limit, at which each
// call reserves one permit as well.
func (t *Transport) pauserOf(a *charge) reserve.Reserver { return t.pausers.For(keys{a.limit, a.key}) }

// unlimited returns the policy of limiters without a limit. They can be paused, and get a rate when one is
// known. They save up nothing, so no two requests are closer than the interval then. A nil clock is the real one.
func unlimited(clock clockwork.Clock) *reserve.Policy {
	var opts []reserve.Option
	if clock != nil {
		opts = append(opts, reserve.WithClock(clock))
	}
	variant := reserve.Variant{Package: "outbound", Limiter: "a limiter without a limit", Curve: evenly}
	return reserve.Must(reserve.NewPolicy(variant, math.Inf(1), opts...))
}

// evenly is the curve of a limiter that saves up nothing.
func evenly(permitsPerSecond float64) *smooth.Curve {
	return &smooth.Curve{
		Rate:     permitsPerSecond,
		Interval: smooth.Interval(permitsPerSecond),
		AtRate:   evenly,
	}
}

// A rate that is exactly the server's is refused now and then: the network delivers one call a
// little later and the next one a little earlier. Where calls are counted in a sliding window, that
// is half of them once it is full, and each refusal stops the key for a second or more: 1.4 times
// the ideal, 1.9 for a window of a second. So a limit that is not adaptive and was refused is derated
// for a while: each call holds its limiter for a little longer than its permits do. Its rate stays
// as it is.
const (
	deratedAfter = time.Second // from the end of the stop: before, the server has room, and the distances stay
	deratedFor   = time.Minute
	deratedBy    = 0.04 // of the time that a call's permits take
)

// derated holds the periods in which a limit runs at 96 %.
type derated struct {
	memory[*period]
	used atomic.Bool // fast path: some limit was derated
}

// A period is that of one limit, in nanoseconds since 1970.
type period struct{ from, until atomic.Int64 }

// begin derates a limit for so long after a stop that ends at resume, or for longer if it is derated already.
func (d *derated) begin(a *charge, resume time.Time, lasts time.Duration) {
	d.used.Store(true)
	key := keys{a.limit, a.key}
	of, ok := d.get(key)
	if !ok {
		of = d.getOr(key, new(period))
	}
	if resume.UnixNano() > of.until.Load() {
		of.from.Store(resume.Add(deratedAfter).UnixNano())
	}
	of.until.Store(max(of.until.Load(), resume.Add(lasts).UnixNano()))
}

// hold holds the limiter of a call that goes now, if it is derated.
func (d *derated) hold(a *charge, now time.Time) {
	l, ok := a.By.(tunable)
	if !ok || !d.used.Load() {
		return
	}
	of, ok := d.get(keys{a.limit, a.key})
	if t := now.UnixNano(); ok && t >= of.from.Load() && t < of.until.Load() {
		l.PauseUntil(now.Add(time.Duration(min(deratedBy*float64(a.Permits)/l.Rate(), 1) * float64(time.Second))))
	}
}
