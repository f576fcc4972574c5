package shared

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/internal/smooth"
)

// A debtAfterOutage is permits granted without the store, and permits that unanswered calls may have charged.
type debtAfterOutage struct {
	permits atomic.Int64
	sent    atomic.Int64 // of them, in calls that are under way
	last    atomic.Int64 // when the last of them were granted, on the limiter's clock

	mu   sync.Mutex
	lost float64 // permits, less what has flowed into a store since
	at   int64   // as of then
}

// lose reports whether the lost permits are a capacity or more.
func (o *debtAfterOutage) lose(now int64, n int, c *smooth.Curve) (all bool) {
	if n == 0 || c.Interval == 0 {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost, o.at = max(0, o.lost-float64(now-o.at)*c.Refill)+float64(n), now
	return o.lost >= c.Capacity
}

// owe counts permits that the store does not know of; a negative n: they were not used.
func (l *Limiter) owe(n int) {
	if n > 0 {
		l.owed.last.Store(l.now())
	}
	l.owed.add(int64(n))
}

func (o *debtAfterOutage) add(n int64) {
	for n != 0 {
		was := o.permits.Load()
		if o.permits.CompareAndSwap(was, max(0, saturate.Add(was, n))) {
			return
		}
	}
}

func (o *debtAfterOutage) untold() float64 { return float64(o.permits.Load()) + float64(o.sent.Load()) }

func (l *Limiter) takeOwed(now int64) (due charge, all int64) {
	o, c := &l.owed, l.terms.Load().curve
	if o.permits.Load() == 0 {
		return charge{}, 0
	}
	all = o.permits.Swap(0)
	o.sent.Add(all)
	return charge{permits: o.due(all, now, c, l.ahead()), age: max(0, now-o.last.Load()), bounded: true}, all
}

// due: at most a capacity and those permits whose time is still ahead, less what was lost.
func (o *debtAfterOutage) due(permits, now int64, c *smooth.Curve, ahead float64) int {
	if c.Interval == 0 || permits == 0 { // there is no limit
		return 0
	}
	o.mu.Lock()
	lost := max(0, o.lost-float64(now-o.at)*c.Refill)
	o.mu.Unlock()
	return int(math.Ceil(max(0, min(float64(permits), max(1, c.Capacity)+ahead-lost, 1<<53))))
}

// forgotten: all that is owed would have overflowed by now.
func (o *debtAfterOutage) forgotten(now int64, c *smooth.Curve) bool {
	return float64(o.due(o.permits.Load(), now, c, 0)) <= float64(now-o.last.Load())*c.Refill
}
