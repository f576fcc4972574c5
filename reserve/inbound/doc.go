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
// A request passes all tiers, or is refused and has been charged by none. So a client that hammers at its own limit
// takes nothing away from others. With 20 a minute for all and 2 a minute for each, one abuser gets 2, and nine others
// still get their 18. Put the tier that refuses most often first: the tiers behind the one that refuses are only looked
// at, and nothing is reserved of them. Put all tiers into one middleware: what an inner middleware refuses an outer one
// has charged.
//
// # Refusals
//
// A refused request is answered with 429, or 503 if the tier is [Overload]. The answer has the tiers' names and
// Cache-Control: no-store (RFC 6585, section 4). Its body is as in RFC 9457, or a line of text for clients that ask for
// text and not for JSON. [WithRefusal] replaces the body. A request that costs more than a tier ever grants at once (11
// of a window of 10) is answered with 413 and no Retry-After. One without valid credentials is answered with 401: see
// [UnauthorizedError].
//
// Retry-After is the longest wait of the tier that refuses and of the tiers behind it whose limiter is in this process.
// (Shared limiters behind it are not asked about a request that is refused already.) It is longer by the client's place
// among the refused clients (see [WithJitter]), rounded up, and at least 1. RateLimit and X-RateLimit-Reset say the
// same time.
//
//   - A global limiter whose rate is known spreads the clients that it refuses. At 20/s, of 100 that are refused at one
//     moment, 20 are told 1 s, 20 are told 2 s, and so on. Nothing is reserved for them. Once the limiter has had
//     permits to spare for 1.5 s, the clients that did not come are not expected any more. The next one is told the
//     shortest time again.
//   - Clients refused by their key's own limiter are told up to 3 s more, evenly spread, or a quarter of the wait if
//     that is longer.
//
// Seconds are all that Retry-After can say. So a limiter that stores a second's worth of permits serves all clients
// that come back on time. One that stores less refuses some of them again. Of 99 clients at 20/s that come back to the
// second, so many are refused again: none with 20 permits stored, 44 with 10, 69 with 5, 94 with none.
//
// # Quota headers
//
// Responses carry RateLimit-Policy (all tiers whose quota is known) and RateLimit (the tier that is closest to
// refusing), as in draft-ietf-httpapi-ratelimit-headers-11. In "user";r=12;t=1 the 12 counts the stored permits and the
// permits that flow in within that second. Otherwise r would be 0 although 50 permits come within it, and a careful
// client would stop for nothing. A limit of infinite rate is in neither. Nested middlewares each add their entries to
// both.
//
// # Waiting
//
// With [WithQueue] a request that has to wait a little waits, instead of being refused. Whether it does is decided when
// it arrives. When its client goes away it gives its permits back. With HTTP/1 net/http sees that only once the
// request's body has been read, so bodies of up to 64 KiB are read while their requests wait. A client that goes away
// keeps its place if it has sent a longer body, or one whose length it has not told.
//
// # Plans
//
// [PerKeyBy] takes limiters with a policy for each key: *keyed.Limiters, whose policy function may
// ask a database. See "Plans from a database" in package keyed for a plan that changes. The key
// function finds who the client is:
//
//	apiKey := func(r *http.Request) (string, error) {
//		if key := r.Header.Get("X-Api-Key"); key != "" {
//			return key, nil
//		}
//		return "", &inbound.UnauthorizedError{Challenge: "ApiKey"} // answered with 401
//	}
//	plan := func(key string) (*reserve.Policy, error) {
//		switch plan, err := planOf(key); { // from the database
//		case errors.Is(err, sql.ErrNoRows):
//			return nil, &inbound.UnauthorizedError{Challenge: "ApiKey"} // an unknown key: 401, too
//		case err != nil:
//			return nil, err // the tier fails: 503, or see FailOpen
//		default:
//			return plans[plan], nil
//		}
//	}
//	inbound.PerKeyBy("key", apiKey, keyed.New(plan, keyed.WithTTL(time.Minute)))
//
// A key that is in use keeps its plan while the function returns errors, so that no client is refused while the
// database fails. An [UnauthorizedError], or [keyed.ErrUnknown], is an answer: it reaches a key that was revoked within
// a minute.
//
// A flood of unknown keys asks the database each time. Put a tier of [PerKey] by address before it.
//
// # Browsers
//
// A page of another origin reads an answer only if CORS allows it, and asks first by OPTIONS, the
// preflight. So put the CORS middleware around this one: it answers preflights itself, so they are not
// charged, and adds Access-Control-Allow-Origin to refusals as well. Have it expose the fields that
// scripts are to read:
//
//	handler := cors.New(cors.Options{ // github.com/rs/cors
//		AllowedOrigins: []string{"https://example.com"},
//		ExposedHeaders: []string{"Retry-After", "RateLimit", "RateLimit-Policy"},
//	}).Handler(limits.Handler(mux))
//
// Where the handlers answer preflights themselves, let these pass with [WithSkip]: see its example.
//
// # The client's address
//
// There is no default for a client's address: a program that believes a header which clients can
// write has no limit at all. Say where it is: [RemoteAddr], [TrustedHeader], [XForwardedFor] or
// [XForwardedForHops], and [Forwarded] or [ForwardedHops] for the header of RFC 7239.
package inbound
