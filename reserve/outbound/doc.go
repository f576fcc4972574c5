// Package outbound is an [http.RoundTripper] that paces the calls a program makes to somebody else's API, and obeys
// what the server says about its limits.
//
//	limiter, err := window.New(50, time.Second) // what the API's documentation says
//	...
//	transport, err := outbound.New(nil, limiter)
//	...
//	client := &http.Client{Transport: transport}
//
// Every client that takes an *http.Client or a RoundTripper can be paced so, without a change to its code.
//
// # Find the key
//
// The key is what calls that share a limit on the server have in common. If it is too wide, a refusal stops calls that
// it does not concern: GitHub's core calls and searches behind one limiter take seven times as long as they must. If it
// is too narrow, calls don't know of each other's refusals.
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
// Some servers name in their responses which calls share a limit: GitHub in X-RateLimit-Resource, Discord in
// X-RateLimit-Bucket, others by a policy's name in RateLimit-Policy. With New(nil, nil), and beside limits for all
// calls once the server has named two, a call has the limit that the last response to its method and path named. A new
// path has the limit of its longest known prefix, if two paths with that prefix have named it and none another; else
// the host's. Each credential has its own limits. Where a server names none, but its responses to two paths differ in
// the limit's size, as X's do, the size is the name. A name that is the Name of a [Limit] is that limit. Beside
// [PerKey] and [Keyed] limits nothing is learned.
//
// # Write down what the documentation says
//
//	"N in T", "N a minute"                       window.New(N, T)
//	"a bucket of b, refilled at r a second"      pace.NewTokenBucket(r, b)
//	"N a day, until midnight in California"      calendar.New(N, calendar.Daily(zone, 0))
//	"N at a time"                                WithMaxInFlight(N)
//	"after a refusal nothing for T"              Limit{Limiter: …, Penalty: T}
//
// The server counts a call somewhere between its sending and its answer. So a window counts a call until T after the
// response, the error, or the end of the attempt, and a calendar's period counts the calls that are out when it begins.
// No stretch of T at the server then holds more than N, whatever the network does. It costs one round trip in each T:
// at 25 in 1 s and 140 ms, calls take 1.14 times as long as at best. A place in flight costs one round trip for each
// call. Evenly spaced calls at exactly the rate are not safe at a server that counts in windows.
//
// # What it does
//
// A request waits for its permits, first come first served. If they would come after its deadline, http.Client's
// Timeout included, it fails at once with a *[reserve.WaitError] and takes nothing. If it is given up while it waits,
// the requests behind it move up.
//
// If the server refuses a request and says for how long (429, 503 or 529 with Retry-After, GitHub's 403), or says that
// nothing is left until a time, all requests of its key stop until then. Queued requests go later, at the same
// distances, so there is no herd at the end. Where the limiter has no rate, one request goes first then, and each that
// is accepted lets two more go, up to as many as were out and not refused; from there on one more each 8 stops. Never
// are more out than the responses say are left. [PauseRefused] stops only the refused request. If the server does not
// say for how long, only the refused request waits: a second, and longer each time while nothing is accepted.
//
// A refusal that concerns all calls (Discord's X-RateLimit-Global; with learned keys also one that says that the named
// limit has room, as GitHub's secondary limits) stops the limiter given to [New] or a [Limit] without keys, or else all
// calls of the credential to the host.
//
// [WithLimit] adds a limit with its own cost, [WithMaxInFlight] bounds how many requests are out, [Adaptive] finds a
// rate that is not known or not right, [WithRetries] sends refused requests again, before later ones, and
// [WithRetryBudget] bounds that. All are off by default.
//
// # A worked example
//
// A server allows 50 requests a second with a burst of 10, and answers others with 429 and Retry-After: 1. 64
// goroutines make 500 calls, which takes 9.8 s at best. With a limiter of 50/s they take 10.0 s, and none is refused.
//
// With a limiter of 80/s and Adaptive the first refusal comes after some 25 calls: all calls stop for 1 s and go on at
// 48/s, which grows to 49.6/s and stays there; it is raised again only after 25 times as long as the stop was.
//
// With no rate at all and a server that sends RateLimit-Policy it takes 10.2 s, and none is refused: the first call
// goes alone, and the others at 49/s, which is what the server allows less 2 %.
//
// # What servers say
//
// The first of these that is there counts.
//
//   - How long to stay away: Retry-After-Ms, X-Ms-Retry-After-Ms, Retry-After, and the bodies of refusals by Google,
//     Discord, Shopify's GraphQL and GitHub. Retry-After may be seconds, decimals, one of HTTP's three forms of dates,
//     or RFC 1123 with UTC. 1e9 and more is a time since 1970. More than 32 days is malformed.
//   - What is left: RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-11, and 3 to 7 before it), and
//     the headers of a [Dialect].
//
// A dialect's reset is the end of a window, before which nothing goes, or, as OpenAI's and Anthropic's, when a bucket
// is full again, which stops no call for longer than one request's worth. Times are compared with the response's Date
// if the local clock is more than 1.5 s away from it. Malformed headers and responses from a cache are ignored. No
// server stops a key for longer than [WithMaxRetryAfter] at a time. Refusals that no retry can mend are returned at
// once.
package outbound
