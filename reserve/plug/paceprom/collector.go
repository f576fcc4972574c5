// Package paceprom shows pace's limiters to Prometheus: register a [Collector].
//
// Nothing is done until Prometheus asks, but for what a transport's hooks count. Each source has the name that the
// program gives it as a label. Keys are no labels, since there are too many.
package paceprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/plug/internal/stats"
	"github.com/nextfree/pace/reserve/shared"
)

// A Collector is a prometheus.Collector. It comes from [NewCollector]. All methods may be called at
// the same time, also when it is registered already.
type Collector struct {
	set   stats.Set
	descs map[*stats.Family]*prometheus.Desc
}

func NewCollector() *Collector {
	c := &Collector{set: stats.Set{Package: "paceprom"}, descs: map[*stats.Family]*prometheus.Desc{}}
	for _, f := range append([]*stats.Family{stats.Waits, stats.QueueWaits}, stats.Families...) {
		c.descs[f] = prometheus.NewDesc(f.Prometheus, f.Help+".", f.Labels, nil)
	}
	return c
}

// Limiter shows a limiter, under a name: pace_limiter_level_permits{limiter="billing"} and others. It returns a
// *[reserve.ValueError] if the limiter is nil, or the name is empty or another limiter's. So do the others.
func (c *Collector) Limiter(name string, l *reserve.Limiter) error { return c.set.Limiter(name, l) }

// Inbound shows a middleware:
// pace_inbound_tier_requests_total{middleware="api",tier="user",result="refused"} and others, and a
// histogram of how long requests waited in the queue, pace_inbound_wait_seconds.
func (c *Collector) Inbound(name string, m *inbound.Middleware) error { return c.set.Inbound(name, m) }

// Shared shows a limiter that is shared through Redis:
// pace_shared_fallbacks_total{limiter="billing"}.
func (c *Collector) Shared(name string, l *shared.Limiter) error { return c.set.Shared(name, l) }

// Outbound returns hooks for a transport, for [outbound.WithHooks], and shows what they count:
// pace_outbound_attempts_total{transport="github",result="sent"} and others. pace_outbound_wait_seconds is a histogram
// of how long sent attempts had waited. They call then's afterwards.
func (c *Collector) Outbound(name string, then outbound.Hooks) (outbound.Hooks, error) {
	return c.set.Outbound(name, then, nil)
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	for _, s := range c.set.Samples() {
		kind := prometheus.GaugeValue
		if s.Counter {
			kind = prometheus.CounterValue
		}
		metrics <- prometheus.MustNewConstMetric(c.descs[s.Family], kind, s.Value, s.Values...)
	}
	c.set.Histograms(func(name string, h stats.Histogram) {
		metrics <- prometheus.MustNewConstHistogram(c.descs[h.Family], h.Count, h.Sum, h.UpTo, name)
	})
}
