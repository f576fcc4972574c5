package paceotel

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/pacetest"
)

// traced runs do with a request in a recorded span, and returns the span's events.
func traced(t *testing.T, do func(r *http.Request)) map[string]map[attribute.Key]attribute.Value {
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	ctx, span := provider.Tracer("test").Start(t.Context(), "call")
	do(httptest.NewRequest(http.MethodGet, "http://example.org/", nil).WithContext(ctx))
	span.End()
	events := map[string]map[attribute.Key]attribute.Value{}
	for _, e := range recorder.Ended()[0].Events() {
		events[e.Name] = map[attribute.Key]attribute.Value{}
		for _, a := range e.Attributes {
			events[e.Name][a.Key] = a.Value
		}
	}
	return events
}

// An outbound call's span says how long it waited for its permit, and what the server said.
func TestSpansOfATransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := reserve.Must(pacetest.New(pacetest.Unlimited()))
		limiter := reserve.Must(pace.NewBursty(0.5, pace.WithBurst(0)))
		told := 0
		hooks := Spans("api", outbound.Hooks{
			Waited:    func(*http.Request, time.Duration) { told++ },
			Throttled: func(*http.Response, string, time.Duration) { told++ },
			Refused:   func(*http.Request, error) { told++ },
		})
		client := pacetest.Client(t, server)
		transport, err := outbound.New(client.Transport, limiter, outbound.WithHooks(hooks))
		require.NoError(t, err)
		call := func(r *http.Request) {
			r.RequestURI = ""
			res, err := transport.RoundTrip(r)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
		}
		require.Empty(t, traced(t, call), "it went at once")
		require.Equal(t, 1, told)

		server.Script(pacetest.Answer{Refuse: true, After: 5 * time.Second})
		events := traced(t, call)
		require.Equal(t, 5.0, events["pace.throttled"]["pace.wait.duration"].AsFloat64())
		require.Equal(t, "api", events["pace.throttled"]["pace.transport"].AsString())
		require.Greater(t, events["pace.waited"]["pace.wait.duration"].AsFloat64(), 0.0)
		require.Equal(t, "api", events["pace.waited"]["pace.transport"].AsString())
		require.Equal(t, 3, told, "the program's own hooks are called too")
	})
}

// An inbound request's span says how long it waited in the queue.
func TestSpansOfAMiddleware(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := inbound.New([]inbound.Tier{inbound.Global("global", reserve.Must(pace.Bursty(0.5, pace.WithBurst(0))))},
			inbound.WithQueue(time.Minute, 3), inbound.WithOnWait(Waited))
		require.NoError(t, err)
		call := func(r *http.Request) {
			m.Handler(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
		}
		require.Empty(t, traced(t, call))
		events := traced(t, call)
		require.Equal(t, 2.0, events["pace.waited"]["pace.wait.duration"].AsFloat64())
		require.NotContains(t, events["pace.waited"], attribute.Key("pace.transport"))
	})
}
