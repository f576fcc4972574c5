package outbound

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/variant"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/adapt"
	lim "github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/internal/smooth"
	"github.com/nextfree/pace/reserve"
)

// A belief is what refusals have shown of a limit whose rate is told: see [adapt.Told]. The limit's own limiter goes on
// counting. Another one beside it spaces the calls.
type belief struct {
	even atomic.Pointer[reserve.Limiter] // nil: calls go as told

	told   *adapt.Told // nil: no rate is told
	mu     sync.Mutex  // for told and the rest
	saved  float64     // even's capacity
	stored float64     // in the limit's own limiter, at the latest refusal
	limit  toldLimit
	warned bool // that it does not fit the server
}

// believe finds what is believed of the charge's limit, if it tells a rate. If the rate has changed, that begins anew.
// A limit that is Exact is known, unless its costs are estimates.
func (a *charge) believe() {
	b := a.state.belief.Load()
	if b == nil || b.even.Load() != nil && b.told.Rate() != toldBy(a.By).rate {
		b = a.believeAnew(b)
	}
	a.belief, a.even = b, b.even.Load()
}

func (a *charge) believeAnew(old *belief) *belief {
	limit := toldBy(a.By)
	fresh := new(belief)
	if limit.rate > 0 && (!a.limit.exact || a.limit.again != nil) {
		fresh.told, fresh.limit = adapt.NewTold(limit.rate, limit.burst, limit.window), limit
	}
	a.state.belief.CompareAndSwap(old, fresh)
	return a.state.belief.Load()
}

// respaced reports whether a refusal has changed what spaces the way's calls since it was charged.
func (w *way) respaced() bool {
	return w.charges.find(func(a *charge) bool { return a.belief != nil && a.belief.even.Load() != a.even }) != nil
}

// believes changes what is believed of the charge's limit, and lets what spaces its calls follow.
func (t *Transport) believes(a *charge, something func(*adapt.Told)) {
	b := a.belief
	if b == nil || b.told == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	something(b.told)
	b.follow(t.clock)
}

// doubt tells the belief of a refusal after which the server wants no calls of the blamed limit for so long. Nothing is
// saved up meanwhile.
func (l *lesson) doubt(a, blamed *charge, stop time.Duration) {
	if a.belief == nil {
		return
	}
	stored, hold := 0., time.Duration(0)
	if a.belief.even.Load() == nil {
		o, _ := a.of.Outlook() // not under the belief's lock
		stored = o.Stored
	}
	l.of.t.believes(a, func(told *adapt.Told) {
		busy := l.of.response.StatusCode >= 500
		hold = told.Refused(l.of.heard, l.of.sent, stop, float64(a.Permits), a.inUse, busy)
		a.belief.stored = stored
	})
	even, stops := a.belief.even.Load(), a.stopsWith(blamed) || stop == 0
	if even != nil && hold > 0 && stops && !l.of.t.pauseRefused {
		even.PauseUntil(l.of.heard.Add(hold))
	}
	if log := l.of.t.log; log != nil {
		if misfit := a.belief.warn(l.of.heard); misfit != "" {
			const says = "outbound: a limit does not fit the server"
			log.misfits.write(log.logger, l.of.heard, l.of.request, says, "limit", a.name(), "seen", misfit)
		}
	}
}

// stopsWith reports whether a stop of the blamed limit is the limit's, too: both hold for the same calls.
func (a *charge) stopsWith(blamed *charge) bool {
	return a == blamed || a.key == any(sharedKey{}) || a.limit.again != nil
}

// doubtful returns the limit on which a refusal casts doubt that a limit is blamed for. If nothing names that, it is
// the one that lets the fewest such calls go, of the caller's limits for the same calls that tell a rate.
func (cs charges) doubtful(blamed *charge, reason string) *charge {
	if blamed.said != nil || blamed.rate != nil || blamed.limit.scope == nil || cs.named(reason) != nil {
		return blamed
	}
	doubted, longest := blamed, 0.
	for a := range cs.all {
		if a.belief == nil || a.belief.told == nil || a.key != blamed.key || a.limit.part != blamed.limit.part {
			continue
		}
		if takes := float64(a.Permits) / a.belief.told.Rate(); takes > longest {
			doubted, longest = a, takes
		}
	}
	return doubted
}

// warn is misfit, once until it is over.
func (b *belief) warn(now time.Time) string {
	seen := b.misfit(now)
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.warned
	if b.warned = seen != ""; before {
		return ""
	}
	return seen
}

// misfit says what was told and what was seen, if more than half of the latest 50 calls were refused; else it is "".
func (b *belief) misfit(now time.Time) string {
	if b == nil || b.told == nil {
		return ""
	}
	b.mu.Lock()
	takes, rate, misfit := b.told.Misfit(now)
	b.mu.Unlock()
	if !misfit {
		return ""
	}
	told := fmt.Sprintf("%.3g a second", b.limit.rate)
	if b.limit.burst > 1 {
		per := time.Duration(b.limit.burst / b.limit.rate * float64(time.Second)).Round(time.Millisecond)
		told = fmt.Sprintf("%.0f in %v", b.limit.burst, per)
	}
	return fmt.Sprintf("told %s; the server takes about %.0f at once and %.3g a second", told, takes, rate)
}

// follow sets what spaces the calls. The belief must be locked.
func (b *belief) follow(clock clockwork.Clock) {
	rate, saved, less := b.told.Pace()
	even := b.even.Load()
	switch {
	case !less && even == nil:
	case !less:
		b.even.Store(nil)
		_ = even.Retime(math.Inf(1)) // for calls that wait there
	case even == nil:
		stored := 0.
		if b.told.Keeps() {
			stored = min(saved, b.stored)
		}
		b.saved = saved
		b.even.Store(spacing(clock, rate, saved, stored).Limiter())
	default:
		if saved != b.saved {
			b.saved = saved
			_ = even.SetPolicy(spacing(clock, rate, saved, 0)) // of the same kind
		}
		if rate != even.Rate() {
			_ = even.Retime(rate)
		}
	}
}

// spacing is the policy of limiters that space calls and save up a few permits.
func spacing(clock clockwork.Clock, rate, saved, stored float64) *reserve.Policy {
	opts := []reserve.Option{reserve.WithStored(stored)}
	if clock != nil {
		opts = append(opts, reserve.WithClock(clock))
	}
	var curve func(rate float64) *smooth.Curve
	curve = func(rate float64) *smooth.Curve {
		return &smooth.Curve{
			Rate: rate, Capacity: saved, Interval: smooth.Interval(rate), Refill: rate / 1e9, Fixed: true, AtRate: curve,
		}
	}
	v := variant.Variant{Package: "outbound", Limiter: "a limiter that spaces calls", Curve: curve}
	return reserve.Must(v.Policy(rate, opts...))
}

// A toldLimit is so many permits per second, 0 if no rate is told, and so many at once.
type toldLimit struct {
	rate, burst float64
	window      bool // a rolling one
}

// toldBy returns what a limiter says. Of an All that is the fastest rate, at which its calls may be spaced, and the
// smallest burst. Quotas of more than ten minutes space no calls.
func toldBy(by reserve.Reserver) (limit toldLimit) {
	for _, part := range queue.Limits(by) {
		one := toldByPart(part.By)
		if one.rate == 0 || one.burst > longest.Seconds()*one.rate {
			continue
		}
		if limit.rate == 0 || one.burst < limit.burst {
			limit.burst, limit.window = one.burst, one.window
		}
		limit.rate = max(limit.rate, one.rate)
	}
	return limit
}

func toldByPart(by lim.Limit) (limit toldLimit) {
	o, known := by.Outlook()
	if !known {
		o.Rate = by.Rate()
		o.Capacity = o.Rate // it does not say: a second's worth
	}
	if math.IsInf(o.Rate, 1) || !(o.Rate > 0) {
		return toldLimit{}
	}
	return toldLimit{o.Rate, o.Capacity, o.Window}
}
