// Package inbound protects a web API and is fair to its users: an http.Handler
// middleware whose limits, the tiers, are charged all or nothing.
//
//	limits, err := inbound.New([]inbound.Tier{
//		inbound.PerKey("user-endpoint", inbound.Both(user, inbound.Endpoint), perUser),
//		inbound.PerKey("endpoint", inbound.Endpoint, perEndpoint),
//		inbound.Global("global", everybody),
//	})
//	mux.Handle("GET /items/{id}", limits.Handler(items))
//
// A request passes all tiers, or is refused and has been charged by none. So a
// client that hammers at its own limit takes nothing away from others: with 20 a
// minute for everybody and 2 a minute for each, one abuser gets 2, and nine others
// still get their 18. Put the tier that refuses most often first: tiers behind the one that
// refuses are only looked at, and nothing is reserved of them.
//
// # Refusals
//
// A refused request is answered with 429 (503, if the tier is [Overload]), the
// tiers' names, Cache-Control: no-store (RFC 6585, section 4), and a body as in
// RFC 9457, or a line of text for clients that prefer that. [WithRefusal] replaces the body.
//
// Retry-After is the longest wait of the tier that refuses and of those behind it whose
// limiter is in this process (others are not asked about a request that is refused
// already), and more by the client's place among those that were refused (see
// [WithJitter]), rounded up, at least 1. RateLimit and X-RateLimit-Reset say the same time.
//
//   - Refused by a global limiter whose rate is known, clients line up: at 20/s, of 100 that are
//     refused at one moment 20 are told 1 s, 20 are told 2 s, and so on, so that none is refused
//     again. Nothing is reserved for them. Once the limiter has had permits to spare for 1.5 s,
//     those in line are not expected any more, and the next client is told the shortest time again.
//   - Refused by a key's own limiter, each is told up to 3 s more, or a quarter of
//     the wait if that is longer, evenly spread.
//
// # Quota headers
//
// Responses carry RateLimit-Policy (all tiers whose quota is known) and RateLimit
// (the tier that is closest to refusing), as in
// draft-ietf-httpapi-ratelimit-headers-11. In "user";r=12;t=1 the 12 counts the stored permits and
// those that flow in within that second. Otherwise r would be 0 although 50 permits come within it, and
// a careful client would stop for nothing.
//
// # Waiting
//
// With [WithQueue] a request that has to wait a little waits, instead of being refused; whether it
// does is decided when it arrives. When its client goes away it gives its permits back. With HTTP/1
// net/http sees that only once the request's body has been read, so bodies of up to 64 KiB are read
// while their requests wait; a client keeps its place if it goes away after it has sent a longer
// one, or one whose length it has not told.
//
// # The client's address
//
// There is no default for a client's address: a program that believes a header which clients can
// write has no limit at all. Say where it is: [RemoteAddr], [TrustedHeader], [XForwardedFor] or
// [XForwardedForHops], and [Forwarded] or [ForwardedHops] for the header of RFC 7239.
package inbound
