// Package inbound is an http.Handler middleware that limits the requests of a server's clients. A request passes all
// limits (tiers), or is refused and charged by none.
//
//	limits, err := inbound.New([]inbound.Tier{
//		inbound.PerKey("user-endpoint", inbound.Both(user, inbound.Endpoint), perUser),
//		inbound.PerKey("endpoint", inbound.Endpoint, perEndpoint),
//		inbound.Global("global", everybody),
//	})
//	mux.Handle("GET /items/{id}", limits.Handler(items))
//
// With 20 a minute for all and 2 a minute for each, one abuser gets 2, and nine others still get their 18. Put the tier
// that refuses most often first, and put all tiers into one middleware: what an inner middleware refuses, an outer one
// has charged.
//
// # Refusals
//
// A refusal is 429; 503 if the tier is [Overload]; 413 if the request costs more than a tier ever grants at once; 401
// without valid credentials ([UnauthorizedError]). It names the tiers, has Cache-Control: no-store, and its body is a
// problem (RFC 9457), or text for clients that ask for text and not for JSON. [WithRefusal] replaces the body.
//
// Retry-After is the longest wait of the tiers that refuse, in whole seconds, at least 1, and later by the client's
// place among the refused clients, so that they don't come back together ([WithJitter]). RateLimit and
// X-RateLimit-Reset say the same time.
//
//   - A global limiter serves refused clients one after another. At 20/s, of 100 that are refused at one moment, 20 are
//     told 1 s, 20 are told 2 s, and so on. Nothing is reserved for them. Clients that don't come within 1.5 s of their
//     time are not expected any more.
//   - Clients refused by their key's limiter are told up to 3 s more, or a quarter of the wait if that is longer.
//
// A limiter that stores a second's permits serves all clients that come back on time; one that stores less refuses some
// again. Of 99 clients at 20/s: none with 20 permits stored, 44 with 10, 69 with 5, 94 with none.
//
// # Quota headers
//
// RateLimit-Policy has all tiers with a known quota, and RateLimit the tier that is closest to refusing
// (draft-ietf-httpapi-ratelimit-headers-11). In "user";r=12;t=1 the 12 are the stored permits and those that flow in
// within the second. Nested middlewares add their entries.
//
// # Waiting
//
// With [WithQueue] a request that has to wait a little waits, instead of being refused. If its client goes away it gives
// its permits back. With HTTP/1, net/http notices that only after the body, so bodies of up to 64 KiB are read while
// their requests wait. A client with a longer body, or one of unknown length, keeps its place.
//
// # Plans
//
// [PerKeyBy] takes *keyed.Limiters, whose policy function may ask a database (see its example, and that of
// [UnauthorizedError]). A policy function returns an UnauthorizedError for an unknown or revoked key (401), and any other
// error for a failure: a known key keeps its plan, and for a new key the tier fails (503, or see [FailOpen]).
// keyed.WithTTL(time.Minute) lets a new plan, or a revocation, reach a key within a minute.
//
// A flood of unknown keys asks the database each time. Put a tier of [PerKey] by address before it.
//
// # Browsers
//
// Put the CORS middleware around this one. Then it answers preflights itself, uncharged, and adds
// Access-Control-Allow-Origin to refusals. Let it expose the fields that scripts read:
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
// There is no default: a header that clients can write is no limit at all. Choose [RemoteAddr], [TrustedHeader],
// [XForwardedFor], [XForwardedForHops], [Forwarded] or [ForwardedHops].
package inbound
