// Package inbound is an http.Handler middleware that limits a server's clients. [New] makes it of tiers ([PerKey],
// [Global]), as in the package's example. A request passes all tiers, or is refused and charged by none: with 20 a
// minute for all and 2 for each, one abuser gets 2, and nine others their 18.
//
// Put all tiers into one middleware, since an outer middleware has charged what an inner one refuses, and first the
// tier that refuses most often.
//
// # Refusals
//
// A refusal is 429, unless [Refusal] says otherwise. It has Cache-Control: no-store and a body that names the tiers.
//
// Retry-After is the longest wait of the tiers that refuse, in whole seconds, at least 1, and spread ([WithJitter]).
// RateLimit and X-RateLimit-Reset say the same time. A global limiter serves refused clients in turn: at 20/s, of 100
// at one moment, 20 are told 1 s, 20 are told 2 s, and so on; nothing is reserved.
//
// # Quota headers
//
// RateLimit-Policy has all tiers with a known quota, RateLimit the tier that is closest to refusing
// (draft-ietf-httpapi-ratelimit-headers-11). In "user";r=12;t=1 the 12 are the stored permits and those of the next
// second.
//
// # Waiting
//
// With [WithQueue] a request waits a little instead of being refused, and gives its permits back if its client goes
// away. With HTTP/1 a client with a body of over 64 KiB, or of unknown length, keeps its place.
//
// # Plans
//
// [PerKeyBy] takes *keyed.Limiters, whose policy function may ask a database: see keyed.WithTTL. For an unknown or
// revoked key it returns an [UnauthorizedError]. Each unknown key asks the database: put a tier of [PerKey] by address
// first.
//
// # Browsers
//
// Put the CORS middleware around this one: it answers preflights, uncharged, and adds its fields to refusals. Have it
// expose Retry-After, RateLimit and RateLimit-Policy. If handlers answer preflights, let these pass with [WithSkip].
//
// # The client's address
//
// There is no default, since a header that clients can write limits nobody: choose [RemoteAddr], [TrustedHeader],
// [XForwardedFor], [XForwardedForHops], [Forwarded] or [ForwardedHops].
package inbound
