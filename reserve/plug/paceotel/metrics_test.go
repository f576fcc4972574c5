package paceotel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"

	"github.com/nextfree/pace/reserve/plug/internal/stats"
	"github.com/nextfree/pace/reserve/plug/internal/stats/statstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collect returns what a reader sees: the values by instrument and attributes, and the histogram.
func collect(t *testing.T, reader *sdk.ManualReader) (map[string]float64, []metricdata.HistogramDataPoint[float64]) {
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &all))
	values := map[string]float64{}
	var histogram []metricdata.HistogramDataPoint[float64]
	for _, scope := range all.ScopeMetrics {
		require.Equal(t, "github.com/nextfree/pace/reserve/plug/paceotel", scope.Scope.Name)
		for _, m := range scope.Metrics {
			require.NotEmpty(t, m.Unit)
			require.NotEmpty(t, m.Description)
			switch data := m.Data.(type) {
			case metricdata.Gauge[float64]:
				add(values, m.Name, data.DataPoints)
			case metricdata.Sum[float64]:
				require.True(t, data.IsMonotonic)
				add(values, m.Name, data.DataPoints)
			case metricdata.Histogram[float64]:
				require.Equal(t, "pace.outbound.wait.duration", m.Name)
				histogram = data.DataPoints
			}
		}
	}
	return values, histogram
}

func add(to map[string]float64, name string, points []metricdata.DataPoint[float64]) {
	for _, p := range points {
		to[name+p.Attributes.Encoded(attribute.DefaultEncoder())] = p.Value
	}
}

// Each instrument shows its numbers, and they are Prometheus's.
func TestEachInstrument(t *testing.T) {
	reader := sdk.NewManualReader()
	m, err := New(sdk.NewMeterProvider(sdk.WithReader(reader)))
	require.NoError(t, err)
	statstest.Fill(t, m)
	got, waits := collect(t, reader)
	want := map[string]float64{}
	for name, value := range statstest.Series {
		want[translated(name)] = value
	}
	require.Equal(t, want, got)
	require.Len(t, waits, 1)
	require.Equal(t, stats.Bounds, waits[0].Bounds)
	require.Equal(t, []uint64{2: 1, 10: 1, 16: 0}, waits[0].BucketCounts)
	require.InDelta(t, statstest.WaitSum, waits[0].Sum, 1e-9)

	require.NoError(t, m.Close())
	got, _ = collect(t, reader)
	require.Empty(t, got)
}

// translated returns the name of a series as OpenTelemetry has it, its attributes sorted.
func translated(series string) string {
	name, labels, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
	for _, f := range stats.Families {
		if f.Prometheus == name {
			name = f.OpenTelemetry
		}
	}
	var attributes []attribute.KeyValue
	for _, label := range strings.Split(labels, ",") {
		key, value, _ := strings.Cut(label, "=")
		attributes = append(attributes, attribute.String("pace."+key, strings.Trim(value, `"`)))
	}
	set := attribute.NewSet(attributes...)
	return name + set.Encoded(attribute.DefaultEncoder())
}

type broken struct {
	noop.MeterProvider
	at int
}

type brokenMeter struct {
	noop.Meter
	left *int
}

func (b broken) Meter(string, ...metric.MeterOption) metric.Meter { return brokenMeter{left: &b.at} }

func (b brokenMeter) Float64ObservableGauge(name string, opts ...metric.Float64ObservableGaugeOption) (
	metric.Float64ObservableGauge, error) {
	if *b.left--; *b.left < 0 {
		return nil, errors.New("no " + name)
	}
	return b.Meter.Float64ObservableGauge(name, opts...)
}

func TestBadInput(t *testing.T) {
	m, err := New(nil)
	require.NoError(t, err)
	statstest.Refuses(t, m, "paceotel")
	for i := range 7 {
		_, err := New(broken{at: i})
		require.Error(t, err, fmt.Sprint(i))
	}
}
