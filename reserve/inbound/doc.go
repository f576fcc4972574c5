// Package inbound is an http.Handler middleware that limits a server's clients. A request passes all limits (tiers), or
// is refused and charged by none.
//
//	limits, err := inbound.New([]inbound.Tier{
//		inbound.PerKey("user-endpoint", inbound.Both(user, inbound.Endpoint), perUser),
//		inbound.Global("global", everybody),
//	})
//	mux.Handle("GET /items/{id}", limits.Handler(items))
//
// With 20 a minute for all and 2 for each, one abuser gets 2, and nine others their 18. Put all tiers into one
// middleware, since an outer middleware has charged what an inner one refuses, and first the tier that refuses most
// often.
//
// # Refusals
//
// A refusal is 429; 503 if the tier is [Overload]; 413 if a tier never grants that many permits; 401 without valid
// credentials ([UnauthorizedError]). It has Cache-Control: no-store and a body that names the tiers ([WithRefusal]).
//
// Retry-After is the longest wait of the tiers that refuse, in whole seconds, at least 1, and spread ([WithJitter]).
// RateLimit and X-RateLimit-Reset say the same time. A global limiter serves refused clients in turn: at 20/s, of 100
// at one moment, 20 are told 1 s, 20 are told 2 s, and so on, for 1.5 s after their time; nothing is reserved.
//
// Of 99 clients at 20/s that come back on time, none is refused again with 20 permits stored, 94 with none.
//
// # Quota headers
//
// RateLimit-Policy has all tiers with a known quota, RateLimit the tier that is closest to refusing
// (draft-ietf-httpapi-ratelimit-headers-11). In "user";r=12;t=1 the 12 are the stored permits and those of the next
// second. Nested middlewares add their entries.
//
// # Waiting
//
// With [WithQueue] a request waits a little instead of being refused, and gives its permits back if its client goes
// away. With HTTP/1 net/http notices that only after the body: a client with a body of over 64 KiB, or of unknown
// length, keeps its place.
//
// # Plans
//
// [PerKeyBy] takes *keyed.Limiters, whose policy function may ask a database. For an unknown or revoked key it returns
// an [UnauthorizedError]. After another error a known key keeps its plan, and for a new key the tier fails. With
// keyed.WithTTL(time.Minute) a new plan reaches a key within a minute. Each unknown key asks the database: put a tier
// of [PerKey] by address first.
//
// # Browsers
//
// Put the CORS middleware around this one: it answers preflights, uncharged, and adds its fields to refusals. If
// handlers answer preflights, let these pass with [WithSkip].
//
//	handler := cors.New(cors.Options{ // github.com/rs/cors
//		AllowedOrigins: []string{"https://example.com"},
//		ExposedHeaders: []string{"Retry-After", "RateLimit", "RateLimit-Policy"},
//	}).Handler(limits.Handler(mux))
//
// # The client's address
//
// There is no default, since a header that clients can write limits nobody: choose [RemoteAddr], [TrustedHeader],
// [XForwardedFor], [XForwardedForHops], [Forwarded] or [ForwardedHops].
package inbound
