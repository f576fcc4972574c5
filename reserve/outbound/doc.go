// Package outbound is an [http.RoundTripper] that paces the calls of a program to an API, and obeys what the server
// says about its limits.
//
//	limiter, err := window.New(50, time.Second) // what the API's documentation says
//	...
//	transport, err := outbound.New(nil, limiter)
//	...
//	client := &http.Client{Transport: transport}
//
// It works with every client that takes an *http.Client or a RoundTripper.
//
// # Find the key
//
// Calls that share a limit on the server have the same key. If the key is too wide, a refusal stops unconcerned calls:
// GitHub's core calls and searches behind one limiter take seven times as long as they must. If it is too narrow, calls
// miss each other's refusals.
//
//	what shares a limit                  write
//	all calls                            New(nil, limiter)
//	the calls to one host                PerKey(Host, hosts.For)
//	the calls of one user of a host      PerKey(Credential, users.For)
//	the calls to one endpoint            PerKey(func(r *http.Request) string { return r.URL.Path }, routes.For)
//	all calls, and those to an endpoint  New(nil, limiter, PerKey(path, routes.For))
//	requests a minute, tokens a minute   New(nil, requests, WithLimit(Limit{Name: "tokens", …}))
//	what the server says                 New(nil, nil)
//
// Some servers name the limit in responses: GitHub in X-RateLimit-Resource, Discord in X-RateLimit-Bucket, others in
// RateLimit-Policy. If a server names none, two paths have two limits if their responses differ in the limit's size, or
// for some seconds in the end of its window, as X's do. With New(nil, nil) the transport learns these names for each
// credential; beside limits of your own only after the server has named two to the calls of one key. A call has the
// limit that its method and path named last. A new path has the limit of its longest known prefix, if two paths there
// named only it; otherwise the host's. A name that equals the Name of a [Limit] means that limit.
//
// # Write down what the documentation says
//
//	"N in T", "N a minute"                       window.New(N, T)
//	"a bucket of b, refilled at r a second"      pace.NewTokenBucket(r, b)
//	"N a day, until midnight in California"      calendar.New(N, calendar.Daily(zone, 0))
//	"N at a time"                                WithMaxInFlight(N)
//	"after a refusal nothing for T"              Limit{Limiter: …, Penalty: T}
//
// The server counts a call between its sending and its answer. So a window counts a call until T after its response or
// end, and a calendar's period counts calls that are out when it begins: the server never sees more than N calls in T.
// This costs one round trip in each T: at 25 in 1 s and 140 ms, calls take 1.14 times as long as at best. Evenly spaced
// calls at exactly the rate are not safe at a server that counts in windows.
//
// # What it does
//
// Requests wait for their permits, first come first served: see [Transport.RoundTrip]. If a waiting request gives up,
// those behind it move up.
//
// All requests of a key stop when the server refuses one and says for how long (429, 503 or 529 with Retry-After,
// GitHub's 403), or says that nothing is left until a time. Queued requests keep their distances, so there is no herd
// at the end. That nothing is left holds also without a time, or with one that has passed: then all wait for a second,
// and longer each time. If the limiter has no rate, one request goes first, and each accepted one lets two more go, up to those
// that were out and not refused, and never more than the server says are left. After a refusal without a time only
// the refused request waits: a second, and longer each time while nothing is accepted. Without a rate, a refusal
// other than a 5xx also bounds how many requests are out, as above; but not if at most 4 % of the requests are refused.
//
// A refusal may have another status: GraphQL's 200 with the code RATE_LIMITED, AWS's 400, Slack's {"ok":false}. It may
// not be about the rate: Stripe's lock_timeout, Okta's limit on calls at a time. Then only its call waits. [Sign] tells
// of others.
// HTTP/2's ENHANCE_YOUR_CALM is a refusal without a time; the server may have begun, so it is repeated as after a 503.
//
// A stop lies on what the refusal names: a limit, an account, a host; else on the key. Nothing but its end lifts it. A
// limit a minute whose refusals say no time is over after at most six retries: 1 + 2 + 4 + 8 + 16 + 32 s.
//
// A request signed above the transport waits no longer than its signature lives: see [WithExpiry].
//
// A refusal may concern all calls: Discord's with X-RateLimit-Global or, with learned keys, one that says that the
// named limit has room, as GitHub's secondary limits. It stops the limiter given to [New] or a [Limit] without keys,
// otherwise all calls of the credential to the host.
//
// Off by default: [WithMaxInFlight], [Adaptive], [WithRetries], [WithRetryBudget] and [PauseRefused].
//
// # A worked example
//
// A server allows 50 requests a second with a burst of 10, and answers others with 429 and Retry-After: 1. 64
// goroutines make 500 calls, which takes 9.8 s at best.
//
//   - A limiter of 50/s: 10.0 s, none refused.
//   - A limiter of 80/s and [Adaptive]: 11.1 s. After some 25 calls one is refused. All stop for 1 s and go on at 48/s,
//     which grows to 50/s in 9 s.
//   - No rate, and a server that sends RateLimit-Policy: 10.2 s, none refused. The first call goes alone, the others at
//     49/s, the server's rate less 2 %.
//
// # What servers say
//
// The first of these that is present counts.
//
//   - How long to stay away: Retry-After-Ms, X-Ms-Retry-After-Ms, X-Amz-Retry-After, Retry-After, other spellings
//     (X-RateLimit-Retry-After), and the bodies of refusals by Google, Discord, Telegram, Matrix, monday.com, OpenRouter,
//     Shopify's GraphQL and GitHub, also in gzip or deflate, or in words ("try again in 20s"). Retry-After may be
//     seconds, decimals, one of HTTP's three date forms, or RFC 1123 with UTC. 1e9 and more is a time since 1970. More
//     than 32 days is malformed.
//   - What is left: RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-11, and 3 to 7 before it), and
//     the headers of a [Dialect].
//
// If the local clock is more than 1.5 s away from the response's Date, times are compared with Date. Malformed headers
// and responses from a cache are ignored, but for the Retry-After of a refusal, less its Age. Refusals that no retry can
// mend are returned at once.
package outbound
