package conform

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/warmup"
)

// The envelope of a limiter knows no model. Of the permits that were not given back, the requests
// granted in any stretch of time hold at most the capacity and the integral of the rate. Paid
// later, the last request's own permits are excepted: those behind it pay for them. Paid upfront,
// the first request of a stretch may be larger than the capacity.
//
// A promise that was made at a higher rate is kept. So where SetRate lowers the rate while
// something is owed, what the old rate gives in the time owed is allowed as well: see
// [Envelope.Explained].

// A Variant is a kind of limiter whose envelope is known.
type Variant struct {
	Name     string
	Rate     float64       // permits per second at the start
	Capacity float64       // permits; of a window, how many it allows
	Burst    time.Duration // in place of Capacity: what is saved up, as a time
	Per      time.Duration // of a window: its length
	Most     int           // of a calendar: so much of a request counts when it goes, the rest is of later periods
	Upfront  bool
	Fixed    bool // the rate can't be changed, and there are no pauses

	New    func() Subject
	Policy func(rate float64) *reserve.Policy
}

// A Subject is what every limiter has.
type Subject interface {
	ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error)
	TryAcquire(n int) bool
}

// A tunable subject is a *reserve.Limiter.
type tunable interface {
	Subject
	SetRate(permitsPerSecond float64) error
	Retime(permitsPerSecond float64) error
	SetPolicy(p *reserve.Policy) error
	PauseUntil(t time.Time)
	Resume()
	NextFree() time.Time
}

// one is one key of many.
type one struct{ *keyed.Limiters[string] }

func (o one) TryAcquire(n int) bool { return o.Limiters.TryAcquire("key", n) }
func (o one) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error) {
	return o.Limiters.ReserveWithin(ctx, "key", n, maxWait)
}

// Variants returns every kind of limiter in the library.
func Variants() []Variant {
	var all []Variant
	add := func(v Variant, policy func(rate float64) (*reserve.Policy, error)) {
		v.Policy = func(rate float64) *reserve.Policy { return reserve.Must(policy(rate)) }
		v.New = func() Subject { return v.Policy(v.Rate).Limiter() }
		all = append(all, v)
		if v.Per == 0 && !strings.HasPrefix(v.Name, "warm") {
			v.Name += ", one key of many"
			v.Fixed = true
			v.New = func() Subject {
				p := v.Policy(v.Rate)
				return one{keyed.New(func(string) (*reserve.Policy, error) { return p, nil })}
			}
			all = append(all, v)
		}
	}
	for _, pay := range []struct {
		name string
		opts []reserve.Option
	}{{"paid later", nil}, {"paid upfront", []reserve.Option{reserve.PayUpfront()}}} {
		upfront := pay.opts != nil
		for _, rate := range []float64{5, 1, 7.3} {
			for _, capacity := range []float64{0, 2, 10} {
				add(Variant{Name: fmt.Sprintf("%v a second, capacity %v, %s", rate, capacity, pay.name), Rate: rate, Capacity: capacity, Upfront: upfront},
					func(rate float64) (*reserve.Policy, error) {
						return pace.Bursty(rate, append([]reserve.Option{pace.WithCapacity(capacity), reserve.WithStored(capacity)}, pay.opts...)...)
					})
			}
			for _, burst := range []time.Duration{300 * time.Millisecond, 2 * time.Second} {
				add(Variant{Name: fmt.Sprintf("%v a second, burst %v, %s", rate, burst, pay.name), Rate: rate, Burst: burst, Upfront: upfront},
					func(rate float64) (*reserve.Policy, error) {
						return pace.Bursty(rate, append([]reserve.Option{pace.WithBurst(burst)}, pay.opts...)...)
					})
			}
		}
		add(Variant{Name: "warm-up, " + pay.name, Rate: 5, Upfront: upfront}, func(rate float64) (*reserve.Policy, error) {
			return warmup.Policy(rate, 2*time.Second, pay.opts...)
		})
	}
	add(Variant{Name: "window", Rate: 5, Capacity: 5, Per: time.Second}, func(float64) (*reserve.Policy, error) {
		return window.Policy(5, time.Second)
	})
	// A quota by the clock: the end of one period and the beginning of the next one are a stretch with two quotas.
	for _, period := range []calendar.Period{calendar.Every(time.Second), calendar.FromFirst(time.Second)} {
		add(Variant{Name: period.String(), Rate: 5, Capacity: 10, Per: time.Second, Most: 5}, func(float64) (*reserve.Policy, error) {
			return calendar.Policy(5, period)
		})
	}
	return all
}

// An Envelope is what a program did to a limiter, and what may be said of it.
type Envelope struct {
	Variant Variant
	History []string

	// Excess is by how many permits (of a store in time: seconds) a stretch held too much; Where says which.
	Excess float64
	Where  string
	// Explained is the largest excess that promises at a higher rate account for.
	Explained float64

	mu      sync.Mutex
	begin   time.Time
	rates   []change
	pauses  []stretch
	granted []*grant
}

type change struct {
	at      time.Duration
	rate    float64
	kept    float64       // permits that promises at the old rate may give beyond the new one's
	expires time.Duration // and when these have gone
}

type grant struct {
	r        *reserve.Reservation // nil: by TryAcquire
	permits  int
	at       time.Duration
	went     bool
	settled  bool
	reserved int
	interval float64 // seconds a permit, as SetRate keeps it and Retime scales it
	least    float64 // at any time
}

// Run does a program of random bytes, two an operation, to a limiter, in a bubble.
func (v Variant) Run(t *testing.T, program []byte) *Envelope {
	e := &Envelope{Variant: v}
	synctest.Test(t, func(t *testing.T) { e.run(t, program) })
	e.measure()
	return e
}

func (e *Envelope) note(format string, args ...any) {
	e.History = append(e.History, fmt.Sprintf("[%v] ", e.now())+fmt.Sprintf(format, args...))
}

// String is the program, and what it violated.
func (e *Envelope) String() string {
	return e.Variant.Name + "\n  " + strings.Join(e.History, "\n  ") + "\n" + e.Where
}

func (e *Envelope) now() time.Duration { return time.Since(e.begin) }

func (e *Envelope) rate() float64 { return e.rates[len(e.rates)-1].rate }

func (e *Envelope) run(t *testing.T, program []byte) {
	v := e.Variant
	e.begin = time.Now()
	e.rates = []change{{rate: v.Rate}}
	limiter := v.New()
	knobs, _ := limiter.(tunable)
	if v.Fixed || v.Per > 0 {
		knobs = nil
	}
	unlimited := reserve.Must(pace.NewBursty(math.Inf(1)))
	never := reserve.Must(pace.NewBursty(1e-3, pace.WithBurst(0)))
	never.TryAcquire(1)
	unit := time.Duration(1e9 / v.Rate / 16)
	wait := sync.WaitGroup{}
	reserveFrom := func(by reserve.Reserver, n int, maxWait time.Duration) {
		g := &grant{permits: n, reserved: n, interval: 1 / e.rate(), least: 1 / e.rate()}
		r, err := by.ReserveWithin(t.Context(), n, maxWait)
		if err != nil {
			e.note("reserve %d within %v: %v", n, maxWait, err)
			return
		}
		e.note("#%d reserve %d: at %v", len(e.granted), n, r.At().Sub(e.begin))
		g.r = &r
		e.granted = append(e.granted, g)
		wait.Go(func() {
			if g.r.Wait(context.Background()) == nil {
				e.mu.Lock()
				g.went, g.at = true, e.now()
				e.mu.Unlock()
			}
		})
	}
	open := func() (all []int) {
		for i, g := range e.granted {
			if g.r != nil && !g.settled {
				all = append(all, i)
			}
		}
		return all
	}
	settle := func(i, actual int) {
		g := e.granted[i]
		e.note("settle #%d of %d at %d", i, g.reserved, actual)
		g.settled = true
		g.permits = min(g.permits, actual)
		g.r.Settle(actual)
	}
	changeRate := func(how string, rate float64) {
		c := change{at: e.now(), rate: rate}
		if old := e.rate(); rate < old && how != "Retime" {
			owed := time.Until(knobs.NextFree())
			c.kept = max(0, owed.Seconds()) * (old - rate)
			c.expires = c.at + owed
		} else if how == "Retime" { // what is owed at an older rate takes so much longer, or shorter
			for i, before := range e.rates {
				if before.kept > 0 && before.expires+e.paused(before.at, c.at) >= c.at {
					owed := max(0, float64(time.Until(knobs.NextFree())))
					e.rates[i].expires = c.at + time.Duration(owed*old/rate)
				}
			}
		}
		for _, g := range e.granted {
			if how == "Retime" {
				g.interval *= e.rate() / rate
				g.least = min(g.least, g.interval)
			}
		}
		e.note("%s %v", how, rate)
		e.rates = append(e.rates, c)
		var err error
		switch how {
		case "SetRate":
			err = knobs.SetRate(rate)
		case "Retime":
			err = knobs.Retime(rate)
		default:
			err = knobs.SetPolicy(v.Policy(rate))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for len(program) >= 2 && len(e.History) < 100 {
		op, arg := program[0]%20, int(program[1])
		program = program[2:]
		switch op {
		case 0, 1, 2:
			reserveFrom(limiter, 1+arg%8, reserve.Forever)
		case 3:
			reserveFrom(limiter, 1+arg%16, reserve.Forever)
		case 4:
			reserveFrom(limiter, 1+arg%4, time.Duration(arg/4)*unit)
		case 5:
			reserveFrom(reserve.All(limiter, unlimited), 1+arg%4, reserve.Forever)
		case 6:
			reserveFrom(reserve.All(limiter, never), 1+arg%4, time.Duration(arg)*unit)
		case 7, 8:
			if n := 1 + arg%4; limiter.TryAcquire(n) {
				e.note("#%d tryAcquire %d", len(e.granted), n)
				e.granted = append(e.granted, &grant{permits: n, reserved: n, interval: 1 / e.rate(), least: 1 / e.rate(), at: e.now(), went: true, settled: true})
			}
		case 9, 10, 11: // any of them
			if open := open(); len(open) > 0 {
				settle(open[arg%len(open)], 0)
			}
		case 12: // the latest
			if open := open(); len(open) > 0 {
				i := open[len(open)-1-arg>>4%len(open)]
				settle(i, arg&15)
			}
		case 13, 14:
			rate := v.Rate * []float64{0.5, 1, 2, 4, 0.2, 10, 1.2, 0.1}[arg%8]
			if knobs != nil && rate != e.rate() {
				changeRate([]string{"SetRate", "SetRate", "Retime", "SetPolicy"}[arg>>6], rate)
			}
		case 15:
			switch {
			case knobs == nil:
			case arg%4 == 0:
				e.note("resume")
				knobs.Resume()
				for i := range e.pauses {
					e.pauses[i].to = min(e.pauses[i].to, e.now())
				}
			default:
				d := time.Duration(arg) * unit / 2
				e.note("pause for %v", d)
				knobs.PauseUntil(time.Now().Add(d))
				e.pauses = append(e.pauses, stretch{e.now(), e.now() + d})
			}
		case 16, 17:
			time.Sleep(time.Duration(arg%64) * unit)
		case 18:
			time.Sleep(time.Duration(arg) * unit)
		case 19: // until one of them goes
			if len(e.granted) > 0 {
				if g := e.granted[arg%len(e.granted)]; g.r != nil {
					time.Sleep(min(g.r.Delay(), time.Hour))
				}
			}
		}
		synctest.Wait()
	}
	wait.Wait()
}

// supply is what flows into the limiter from the beginning until a time.
func (e *Envelope) supply(until time.Duration) (sum float64) {
	for i, c := range e.rates {
		from, to := c.at, until
		if i+1 < len(e.rates) {
			to = min(to, e.rates[i+1].at)
		}
		if to <= from {
			continue
		}
		rate := c.rate
		if e.Variant.Burst > 0 {
			rate = 1
		}
		sum += rate * (to - from - e.paused(from, to)).Seconds()
	}
	return sum
}

// paused is how long the limiter was paused in a stretch.
func (e *Envelope) paused(from, to time.Duration) (sum time.Duration) {
	end := from
	for _, p := range e.pauses { // they begin in order
		if begin, stop := max(p.from, end), min(p.to, to); begin < stop {
			sum += stop - begin
			end = stop
		}
	}
	return sum
}

// kept is what promises at a higher rate may give in a stretch.
func (e *Envelope) kept(from, to time.Duration) (sum float64) {
	for _, c := range e.rates {
		if c.at <= to && from <= c.expires+e.paused(c.at, to) {
			sum += c.kept
		}
	}
	return sum
}

// cost is what a request takes: permits, or of a store in time the least time that it ever stood for.
func (e *Envelope) cost(g *grant) float64 {
	if most := e.Variant.Most; most > 0 {
		return float64(min(g.permits, most))
	}
	if e.Variant.Burst == 0 {
		return float64(g.permits)
	}
	return float64(g.permits) * g.least
}

// measure compares each two requests that were granted.
func (e *Envelope) measure() {
	var used []*grant
	for _, g := range e.granted {
		if g.went && g.permits > 0 {
			used = append(used, g)
		}
	}
	v := e.Variant
	capacity := v.Capacity
	if v.Burst > 0 {
		capacity = v.Burst.Seconds()
	}
	supply := make([]float64, len(used))
	for i, g := range used {
		supply[i] = e.supply(g.at)
	}
	for i, first := range used {
		sum := 0.0
		for k := i; k < len(used); k++ {
			last := used[k]
			own, limit := e.cost(last), capacity+supply[k]-supply[i]
			switch {
			case v.Per > 0:
				if last.at-first.at >= v.Per {
					own = 0
				}
				limit = capacity
				sum += own
			case v.Upfront:
				sum += own
				limit = max(limit, limit-capacity+e.cost(first))
			}
			excess := sum - limit
			if kept := e.kept(first.at, last.at); kept > 0 && v.Burst == 0 && excess > 1e-5 {
				e.Explained = max(e.Explained, min(excess, kept))
				excess -= kept
			}
			if excess > max(1e-5, e.Excess) {
				e.Excess = excess
				e.Where = fmt.Sprintf("%.6f go from %v to %v, where %.6f are allowed", sum, first.at, last.at, limit)
			}
			if !v.Upfront && v.Per == 0 {
				sum += own
			}
		}
	}
}
