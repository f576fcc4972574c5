// Package paceotel shows pace's limiters through OpenTelemetry: [New] makes the instruments, which show what they are
// given.
//
// The instruments are observable: nothing is done until a reader asks, but for what a transport's hooks count and the
// histogram of its waits. Each source has the name that the program gives it as an attribute. Keys are no attributes,
// since there are too many.
package paceotel

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/plug/internal/stats"
	"github.com/nextfree/pace/reserve/shared"
)

// Metrics are the instruments. They come from [New]. All methods may be called at the same time.
type Metrics struct {
	set          stats.Set
	waits        metric.Float64Histogram
	registration metric.Registration
}

// New makes the instruments with a provider's meter (nil: otel.GetMeterProvider()), and returns the
// provider's errors. They show nothing yet.
func New(provider metric.MeterProvider) (*Metrics, error) {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	meter := provider.Meter("github.com/nextfree/pace/reserve/plug/paceotel")
	m := &Metrics{set: stats.Set{Package: "paceotel"}}
	instruments, all := map[*stats.Family]metric.Float64Observable{}, []metric.Observable{}
	for _, f := range stats.Families {
		var err error
		unit, help := metric.WithUnit(f.Unit), metric.WithDescription(f.Help+".")
		if f.Counter {
			instruments[f], err = meter.Float64ObservableCounter(f.OpenTelemetry, unit, help)
		} else {
			instruments[f], err = meter.Float64ObservableGauge(f.OpenTelemetry, unit, help)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, instruments[f])
	}
	var err error
	m.waits, err = meter.Float64Histogram(stats.Waits.OpenTelemetry, metric.WithUnit(stats.Waits.Unit),
		metric.WithDescription(stats.Waits.Help+"."), metric.WithExplicitBucketBoundaries(stats.Bounds...))
	if err != nil {
		return nil, err
	}
	m.registration, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, s := range m.set.Samples() {
			attributes := make([]attribute.KeyValue, len(s.Values))
			for i, v := range s.Values {
				attributes[i] = attribute.String("pace."+s.Labels[i], v)
			}
			o.ObserveFloat64(instruments[s.Family], s.Value, metric.WithAttributes(attributes...))
		}
		return nil
	}, all...)
	return m, err
}

// Limiter shows a limiter, under a name: pace.limiter.level with the attribute pace.limiter, and others. It returns a
// *[reserve.ValueError] if the limiter is nil, or the name is empty or another limiter's. So do the others.
func (m *Metrics) Limiter(name string, l *reserve.Limiter) error { return m.set.Limiter(name, l) }

// Inbound shows a middleware: pace.inbound.tier_requests with the attributes pace.middleware,
// pace.tier and pace.result, and others.
func (m *Metrics) Inbound(name string, of *inbound.Middleware) error { return m.set.Inbound(name, of) }

// Shared shows a limiter that is shared through Redis: pace.shared.fallbacks with the attribute
// pace.limiter.
func (m *Metrics) Shared(name string, l *shared.Limiter) error { return m.set.Shared(name, l) }

// Outbound returns hooks for a transport, for [outbound.WithHooks], and shows what they count. These are
// pace.outbound.attempts, with the attributes pace.transport and pace.result, and others. pace.outbound.wait.duration
// is a histogram of how long sent attempts had waited. They call then's afterwards.
func (m *Metrics) Outbound(name string, then outbound.Hooks) (outbound.Hooks, error) {
	own := metric.WithAttributeSet(attribute.NewSet(attribute.String("pace.transport", name)))
	return m.set.Outbound(name, then, func(r *http.Request, waited time.Duration) {
		m.waits.Record(r.Context(), waited.Seconds(), own)
	})
}

// Close ends it: the instruments show nothing more.
func (m *Metrics) Close() error { return m.registration.Unregister() }
