package paceotel

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nextfree/pace/reserve/outbound/llm"
)

// tokenBounds are the boundaries that OpenTelemetry's conventions advise.
var tokenBounds = []float64{
	1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864,
}

// Tokens returns a function for [llm.WithUsage] that records the histogram gen_ai.client.token.usage, as
// OpenTelemetry's semantic conventions have it: with gen_ai.token.type (input, output), gen_ai.provider.name,
// gen_ai.request.model and server.address. The provider's name is that of the conventions: "openai", "anthropic",
// "gcp.gemini", "aws.bedrock". A model's name comes from the request: where clients choose it, a view should drop it. A
// nil MeterProvider is the global one. Tokens returns that one's errors.
func Tokens(provider metric.MeterProvider, name string) (func(llm.Key, llm.Usage), error) {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	tokens, err := provider.Meter("github.com/nextfree/pace/reserve/plug/paceotel").Int64Histogram(
		"gen_ai.client.token.usage", metric.WithUnit("{token}"), metric.WithDescription("Tokens that a call used."),
		metric.WithExplicitBucketBoundaries(tokenBounds...))
	if err != nil {
		return nil, err
	}
	return func(key llm.Key, u llm.Usage) {
		record := func(kind string, n int) {
			if n > 0 {
				tokens.Record(context.Background(), int64(n), metric.WithAttributes(
					attribute.String("gen_ai.token.type", kind), attribute.String("gen_ai.provider.name", name),
					attribute.String("gen_ai.request.model", key.Model), attribute.String("server.address", key.Host)))
			}
		}
		record("input", u.Input)
		record("output", u.Output)
	}, nil
}
