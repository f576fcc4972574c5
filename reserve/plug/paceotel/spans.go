package paceotel

import (
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/nextfree/pace/reserve/outbound"
)

// Waited adds an event to the span of the request's context, if that is recorded and the request has waited. The event
// is pace.waited, with the seconds as pace.wait.duration. It is for [inbound.WithOnWait].
func Waited(r *http.Request, waited time.Duration) { event(r, "pace.waited", "", waited) }

// Spans returns hooks for a transport, for [outbound.WithHooks]. They add events to the span of the request's context,
// if that is recorded. The events are pace.waited before an attempt that had to wait, pace.refused if its permits would
// have come too late, and pace.throttled if the server has refused it. They have the transport's name as
// pace.transport, and pace.wait.duration in seconds. That is how long the attempt has waited, or how long the server
// wants calls to stay away. They call then's afterwards.
func Spans(name string, then outbound.Hooks) outbound.Hooks {
	h := then
	h.Waited = func(r *http.Request, waited time.Duration) {
		event(r, "pace.waited", name, waited)
		if then.Waited != nil {
			then.Waited(r, waited)
		}
	}
	h.Refused = func(r *http.Request, err error) {
		if span := trace.SpanFromContext(r.Context()); span.IsRecording() {
			span.AddEvent("pace.refused", trace.WithAttributes(transport(name), attribute.String("error", err.Error())))
		}
		if then.Refused != nil {
			then.Refused(r, err)
		}
	}
	h.Throttled = func(r *http.Response, limit string, retryAfter time.Duration) {
		if r.Request != nil {
			if span := trace.SpanFromContext(r.Request.Context()); span.IsRecording() {
				span.AddEvent("pace.throttled", trace.WithAttributes(transport(name),
					attribute.String("pace.limit", limit), duration(retryAfter)))
			}
		}
		if then.Throttled != nil {
			then.Throttled(r, limit, retryAfter)
		}
	}
	return h
}

func event(r *http.Request, what, name string, waited time.Duration) {
	span := trace.SpanFromContext(r.Context())
	if waited <= 0 || !span.IsRecording() {
		return
	}
	attributes := []attribute.KeyValue{duration(waited)}
	if name != "" {
		attributes = append(attributes, transport(name))
	}
	span.AddEvent(what, trace.WithAttributes(attributes...))
}

func transport(name string) attribute.KeyValue { return attribute.String("pace.transport", name) }

func duration(d time.Duration) attribute.KeyValue {
	return attribute.Float64("pace.wait.duration", d.Seconds())
}
