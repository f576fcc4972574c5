package paceotel_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/plug/paceotel"
)

// A program that exports its metrics has a reader of another kind.
func Example() {
	reader := metric.NewManualReader()
	metrics, err := paceotel.New(metric.NewMeterProvider(metric.WithReader(reader)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer metrics.Close()
	limiter := reserve.Must(pace.NewBursty(10))
	if err := metrics.Limiter("billing", limiter); err != nil {
		fmt.Println(err)
		return
	}
	limiter.Allow()

	var all metricdata.ResourceMetrics
	_ = reader.Collect(context.Background(), &all)
	for _, m := range all.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[float64]); ok && m.Name == "pace.limiter.granted" {
			fmt.Println(m.Name, sum.DataPoints[0].Value)
		}
	}
	// Output: pace.limiter.granted 1
}

// An outbound call's wait, and an inbound request's, are events of their spans.
func ExampleSpans() {
	hooks := paceotel.Spans("github", outbound.Hooks{})
	limiter := reserve.Must(pace.NewBursty(10))
	client := &http.Client{Transport: reserve.Must(outbound.New(nil, limiter, outbound.WithHooks(hooks)))}
	_ = client

	limits, err := inbound.New([]inbound.Tier{inbound.GlobalBy("global", limiter)},
		inbound.WithQueue(2*time.Second, 100), inbound.WithOnWait(paceotel.Waited))
	_ = limits
	fmt.Println(err)
	// Output: <nil>
}
