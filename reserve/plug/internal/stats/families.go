package stats

// What there is of a limiter.
var (
	rate     = gauge("limiter", "rate_permits_per_second", "rate", "{permit}/s", "Fresh permits per second")
	capacity = gauge("limiter", "capacity_permits", "capacity", "{permit}",
		"The largest number of permits that can be stored, or that a window allows")
	level = gauge("limiter", "level_permits", "level", "{permit}",
		"Permits that are stored; while any are owed, minus the permits that have to come first")
	debt = gauge("limiter", "debt_permits", "debt", "{permit}",
		"Permits that are owed, by granted and by waiting requests")
	wait = gauge("limiter", "next_permit_seconds", "next_permit", "s",
		"How long a request for one permit would wait if it were made now")
	paused  = gauge("limiter", "pause_seconds", "pause", "s", "How long the limiter is paused from now on")
	waiting = gauge("limiter", "waiting_callers", "waiting", "{caller}", "Callers that wait now")
	granted = counter("limiter", "granted_permits", "granted", "{permit}",
		"Permits that were promised, or charged afterwards")
	refused  = counter("limiter", "refused_permits", "refused", "{permit}", "Permits that were asked for and not promised")
	returned = counter("limiter", "given_back_permits", "given_back", "{permit}",
		"Permits that were granted and came back unused")
	taken = gauge("limiter", "used_permits", "used", "{permit}",
		"Permits granted less those given back, since the limiter was made; less for a moment when some come back")
	waited = counter("limiter", "waited_seconds", "waited", "s", "How long callers have waited, all together")
)

// Of a transport, outbound.
var (
	attempts = counter("outbound", "attempts", "attempts", "{attempt}",
		"Attempts by result: sent, or not_sent since they got no permits in time", "result")
	throttled = counter("outbound", "throttled_attempts", "throttled", "{attempt}", "Attempts that the server has refused")
	held      = counter("outbound", "retry_after_seconds", "retry_after", "s",
		"For how long refusals held back their limits or themselves, all together")
	changes = counter("outbound", "rate_changes", "rate_changes", "{change}",
		"Changes of rates that are being found", "direction")
	estimated = counter("outbound", "estimated_permits", "estimated", "{permit}",
		"Permits of calls that were settled, as they were estimated")
	used = counter("outbound", "used_permits", "used", "{permit}",
		"Permits of calls that were settled, as they were used")
)

// Of a middleware, inbound.
var (
	allowed      = counter("inbound", "allowed_requests", "allowed", "{request}", "Requests that passed all tiers")
	unauthorized = counter("inbound", "unauthorized_requests", "unauthorized", "{request}",
		"Requests that were answered with 401")
	queueWaited = counter("inbound", "waited_seconds", "waited", "s",
		"How long requests have waited in the queue, all together")
	queued = counter("inbound", "queued_requests", "queued", "{request}",
		"Requests that had to wait, and were let through")
	queue = gauge("inbound", "waiting_requests", "waiting", "{request}", "Requests that wait now")
	gone  = counter("inbound", "gone_requests", "gone", "{request}",
		"Requests whose client went away before they were served or answered")
	delayed = counter("inbound", "delayed_refusals", "delayed", "{request}", "Refusals that were delayed by the tarpit")
	tiers   = counter("inbound", "tier_requests", "tier_requests", "{request}",
		"Requests by tier and result: refused, would_refuse but for a dry run, or failed", "tier", "result")
	crowded = counter("inbound", "tier_crowded_requests", "tier_crowded", "{request}",
		"Requests of keys that shared a limiter for want of room", "tier")
)

// Of a limiter that is shared through Redis.
var fallbacks = counter("shared", "fallbacks", "fallbacks", "{request}",
	"Requests that were decided without Redis, because it failed")

// Families are all metrics but the histograms.
var Families = []*Family{
	rate, capacity, level, debt, wait, paused, waiting, granted, refused, returned, taken, waited,
	attempts, throttled, held, changes, estimated, used,
	allowed, queued, queue, queueWaited, gone, unauthorized, delayed, tiers, crowded,
	fallbacks,
}

// Waits and QueueWaits are the families of the histograms. OpenTelemetry has no histogram that is read
// when a reader asks, so there QueueWaits is not shown.
var (
	Waits = &Family{
		Prometheus: "pace_outbound_wait_seconds", OpenTelemetry: "pace.outbound.wait.duration", Unit: "s",
		Help: "How long attempts that were sent had waited for their permits", Labels: []string{"transport"},
	}
	QueueWaits = &Family{
		Prometheus: "pace_inbound_wait_seconds", OpenTelemetry: "pace.inbound.wait.duration", Unit: "s",
		Help: "How long requests waited in the queue", Labels: []string{"middleware"},
	}
)

// labels are the names of the label that says the source, by its kind.
var labels = map[string]string{
	"limiter": "limiter", "outbound": "transport", "inbound": "middleware", "shared": "limiter",
}

func gauge(kind, prometheus, openTelemetry, unit, help string) *Family {
	return &Family{
		Prometheus: "pace_" + kind + "_" + prometheus, OpenTelemetry: "pace." + kind + "." + openTelemetry,
		Unit: unit, Help: help, Labels: []string{labels[kind]},
	}
}

func counter(kind, prometheus, openTelemetry, unit, help string, more ...string) *Family {
	f := gauge(kind, prometheus+"_total", openTelemetry, unit, help)
	f.Counter, f.Labels = true, append(f.Labels, more...)
	return f
}
