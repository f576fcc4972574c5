package stats

import (
	"net/http"
	"sort"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/reserve/outbound"
)

// Bounds are those of the histograms of waits, in seconds.
var Bounds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}

// Calls are what a transport's hooks count.
type Calls struct {
	sent, refused, throttled, raised, lowered, estimated, used atomic.Uint64

	held    atomic.Int64      // microseconds: of nanoseconds there is room for 292 years
	waited  atomic.Int64      // likewise
	buckets [17]atomic.Uint64 // up to each of Bounds, and beyond
}

// Outbound adds a transport, and returns its hooks, which call then's afterwards. If observe is not
// nil it is told of each wait.
func (s *Set) Outbound(name string, then outbound.Hooks, observe func(*http.Request, time.Duration)) (
	outbound.Hooks, error,
) {
	c := new(Calls)
	err := s.add(source{kind: "a transport", name: name, waits: c.histogram, samples: c.samples})
	if err != nil {
		return outbound.Hooks{}, err
	}
	h := then
	h.Waited = func(r *http.Request, d time.Duration) {
		c.wait(d)
		if observe != nil {
			observe(r, d)
		}
		if then.Waited != nil {
			then.Waited(r, d)
		}
	}
	h.Refused = func(r *http.Request, err error) {
		c.refused.Add(1)
		if then.Refused != nil {
			then.Refused(r, err)
		}
	}
	h.Throttled = func(r *http.Response, limit string, retryAfter time.Duration) {
		c.throttled.Add(1)
		c.held.Add(retryAfter.Microseconds())
		if then.Throttled != nil {
			then.Throttled(r, limit, retryAfter)
		}
	}
	h.RateChanged = func(r *http.Request, limit string, from, to float64) {
		if to > from {
			c.raised.Add(1)
		} else {
			c.lowered.Add(1)
		}
		if then.RateChanged != nil {
			then.RateChanged(r, limit, from, to)
		}
	}
	h.Settled = func(r *http.Request, limit string, estimated, used int) {
		c.estimated.Add(uint64(max(0, estimated)))
		c.used.Add(uint64(max(0, used)))
		if then.Settled != nil {
			then.Settled(r, limit, estimated, used)
		}
	}
	return h, nil
}

func (c *Calls) samples(yield func(*Family, float64, ...string)) {
	yield(attempts, float64(c.sent.Load()), "sent")
	yield(attempts, float64(c.refused.Load()), "not_sent")
	yield(throttled, float64(c.throttled.Load()))
	yield(held, seconds(&c.held))
	yield(changes, float64(c.raised.Load()), "up")
	yield(changes, float64(c.lowered.Load()), "down")
	yield(estimated, float64(c.estimated.Load()))
	yield(used, float64(c.used.Load()))
}

func (c *Calls) wait(d time.Duration) {
	c.sent.Add(1)
	c.waited.Add(d.Microseconds())
	c.buckets[sort.SearchFloat64s(Bounds, d.Seconds())].Add(1)
}

// histogram returns the waits so far.
func (c *Calls) histogram() Histogram {
	h := Histogram{Family: Waits, UpTo: make(map[float64]uint64, len(Bounds))}
	for i := range c.buckets {
		h.Count += c.buckets[i].Load()
		if i < len(Bounds) {
			h.UpTo[Bounds[i]] = h.Count
		}
	}
	h.Sum = seconds(&c.waited)
	return h
}

func seconds(micros *atomic.Int64) float64 { return float64(micros.Load()) / 1e6 }
