// Package outbound is an [http.RoundTripper] that paces the calls a program makes to
// somebody else's API, and listens to what the server says about its limits.
//
//	limiter, err := pace.NewBursty(50, pace.WithBurst(0)) // what the API's documentation says
//	...
//	client := &http.Client{Transport: outbound.New(nil, limiter)}
//
// Every client that takes an *http.Client or a RoundTripper can be paced so, without
// a change to its code.
//
// # What it does
//
// A request waits for its permits, first come first served. If they would come after
// its deadline, http.Client's Timeout included, it fails at once with a
// *[reserve.WaitError] and takes nothing; if it is given up while it waits, others get them.
//
// If the server refuses a request (429, 503 with Retry-After, GitHub's 403) all requests of its
// key are stopped for as long as it says, and not only the one that was refused: its siblings would
// only be refused as well. Those who queue go later, at the same distances, so there is no
// herd at the end. [PauseRefused] stops only the one. The same goes for a response that
// says that nothing is left for more than 2 s.
//
// Where a request has several limiters (New's and one by [Per], say), the last one is
// stopped. What the others had promised for the time of the stop is used at its end, so
// those are not spaced by them again; with no limiter that has a rate, all who waited go at once.
//
// Requests share the limiter that New is given. [Per] paces them by key: by
// [Host], [Credential], or what you like. One key never slows down another.
//
// [Adaptive] finds out the rate, if it is not known or not right. [WithRetries] sends
// refused requests again. Both are off by default.
//
// # A worked example
//
// A server allows 50 requests a second with a burst of 10, and answers others with 429 and
// Retry-After: 1. 64 goroutines make 500 calls, which takes 9.8 s at best. With a
// limiter of 50/s they take 10.0 s, and none is refused.
//
// With one of 80/s and Adaptive the first refusal comes after some 25 calls: everybody stops for
// 1 s and goes on at 56/s. The second one makes that 43/s, which grows back to 47.6/s within 2 s and
// then slowly; no third one follows. That takes 12.0 s, of which the server has nothing to do for
// 1.6 s; with PauseRefused it takes 10.3 s.
//
// With no rate at all and a server that sends RateLimit-Policy it takes 10.2 s, and none
// is refused: the first call goes alone, and the others at 49/s, which is what the server
// allows less 2 %.
//
// # Headers
//
// What servers say is read as follows, the first that is there: how long to stay away
// from Retry-After-Ms, X-Ms-Retry-After-Ms, and Retry-After (seconds, decimals, HTTP's three forms of
// dates, and RFC 1123 with UTC; 1e9 and more is a time since 1970); what is left from
// RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-11, and 3 to 7 before it),
// and from X-RateLimit-Remaining and -Reset with their relatives. Times are compared with the
// response's Date. What is malformed is ignored, and so are responses from a cache. No server can stop
// a key for longer than [WithMaxRetryAfter] at a time.
package outbound
