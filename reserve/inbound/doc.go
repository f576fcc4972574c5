// Package inbound is an http.Handler middleware that limits the requests of a server's clients. A request passes all
// limits (tiers), or is refused and charged by none.
//
//	limits, err := inbound.New([]inbound.Tier{
//		inbound.PerKey("user-endpoint", inbound.Both(user, inbound.Endpoint), perUser),
//		inbound.Global("global", everybody),
//	})
//	mux.Handle("GET /items/{id}", limits.Handler(items))
//
// With 20 a minute for all and 2 for each, one abuser gets 2, and nine others their 18. Put the tier that refuses most
// often first, and all tiers into one middleware: what an inner middleware refuses, an outer one has charged.
//
// # Refusals
//
// A refusal is 429; 503 if the tier is [Overload]; 413 if a tier never grants that many permits; 401 without valid
// credentials ([UnauthorizedError]). It has Cache-Control: no-store and a problem (RFC 9457) or text that names the
// tiers: see [WithRefusal].
//
// Retry-After is the longest wait of the tiers that refuse, in whole seconds, at least 1, and spread, so that refused
// clients don't come back together ([WithJitter]). RateLimit and X-RateLimit-Reset say the same time.
//
//   - A global limiter serves refused clients one after another: at 20/s, of 100 at one moment, 20 are told 1 s, 20 are
//     told 2 s, and so on. Nothing is reserved. A client 1.5 s after its time is not expected any more.
//   - Clients refused by their key's limiter are told up to 3 s more, or a quarter of the wait if that is longer.
//
// Of 99 clients at 20/s that come back on time, none is refused again with 20 permits stored, 44 with 10, 94 with none.
//
// # Quota headers
//
// RateLimit-Policy has all tiers with a known quota, RateLimit the tier that is closest to refusing
// (draft-ietf-httpapi-ratelimit-headers-11). In "user";r=12;t=1 the 12 are the stored permits and those of the next
// second. Nested middlewares add their entries.
//
// # Waiting
//
// With [WithQueue] a request that has to wait a little waits, instead of being refused, and gives its permits back if
// its client goes away. With HTTP/1 net/http notices that only after the body, so bodies of up to 64 KiB are read
// early; a client with a longer body, or one of unknown length, keeps its place.
//
// # Plans
//
// [PerKeyBy] takes *keyed.Limiters, whose policy function may ask a database. It returns an [UnauthorizedError] for an
// unknown or revoked key (401), and another error for a failure: a known key keeps its plan, and for a new key the tier
// fails (503, or see [FailOpen]). keyed.WithTTL(time.Minute) lets a new plan reach a key within a minute. A flood of
// unknown keys asks each time: put a tier of [PerKey] by address before it.
//
// # Browsers
//
// Put the CORS middleware around this one: it answers preflights, uncharged, and adds its fields to refusals.
//
//	handler := cors.New(cors.Options{ // github.com/rs/cors
//		AllowedOrigins: []string{"https://example.com"},
//		ExposedHeaders: []string{"Retry-After", "RateLimit", "RateLimit-Policy"},
//	}).Handler(limits.Handler(mux))
//
// Where handlers answer preflights themselves, let these pass with [WithSkip].
//
// # The client's address
//
// There is no default: a header that clients can write limits nobody. Choose [RemoteAddr], [TrustedHeader],
// [XForwardedFor], [XForwardedForHops], [Forwarded] or [ForwardedHops].
package inbound
