package paceotel

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nextfree/pace/reserve/outbound/llm"
)

// The names are those of OpenTelemetry's conventions for generative AI. What was not used is no point.
func TestTokens(t *testing.T) {
	reader := sdk.NewManualReader()
	usage, err := Tokens(sdk.NewMeterProvider(sdk.WithReader(reader)), "openai")
	require.NoError(t, err)
	key := llm.Key{Host: "api.openai.com", Model: "gpt-5", Credential: 1}
	usage(key, llm.Usage{Input: 100, CachedInput: 60, Output: 7})
	usage(key, llm.Usage{Input: 200, Output: 0})
	usage(key, llm.Usage{})
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &all))
	m := all.ScopeMetrics[0].Metrics[0]
	require.Equal(t, "gen_ai.client.token.usage", m.Name)
	require.Equal(t, "{token}", m.Unit)
	got := map[string][2]int{}
	for _, p := range m.Data.(metricdata.Histogram[int64]).DataPoints {
		require.Equal(t, tokenBounds, p.Bounds)
		got[p.Attributes.Encoded(attribute.DefaultEncoder())] = [2]int{int(p.Count), int(p.Sum)}
	}
	const rest = "gen_ai.provider.name=openai,gen_ai.request.model=gpt-5,gen_ai.token.type="
	require.Equal(t, map[string][2]int{
		rest + "input,server.address=api.openai.com": {2, 300}, rest + "output,server.address=api.openai.com": {1, 7},
	}, got)
}
