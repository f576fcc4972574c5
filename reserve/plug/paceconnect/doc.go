// Package paceconnect paces the calls of Connect clients, and limits the calls that handlers get:
// connectrpc.com/connect, with its own protocol, gRPC's and gRPC-Web's.
//
// A call is a request to /package.Service/Method. So an [outbound.Transport] paces it and an [inbound.Middleware]
// limits it, with their keys, costs and hooks.
//
// # Clients
//
// A call waits for its permits. If they would come after its deadline it fails at once, with CodeDeadlineExceeded and
// the *[reserve.WaitError] inside; this package never returns CodeResourceExhausted, which is a server's word.
// r.URL.Path is the procedure, and r.Header the call's.
//
// CodeResourceExhausted is a refusal. So is CodeUnavailable with a time, from Envoy's rate limiter, or for a proxy's
// 429. The time is in a RetryInfo, in Retry-After, or in grpc-retry-pushback-ms. A message that is too large is no
// refusal.
//
// A stream takes its permits before it sends or receives anything, or with [PerMessage] for each message that it sends.
// A refusal in the middle of a stream counts. [outbound.WithRetries] has no effect.
//
// # Handlers
//
// A call passes all tiers of the Middleware, or is refused and charged by none. [inbound.Endpoint] is the procedure,
// r.Header the call's, r.RemoteAddr the peer. A refused call gets CodeResourceExhausted, or CodeUnavailable for HTTP's
// 503, with a RetryInfo, Retry-After and grpc-retry-pushback-ms.
package paceconnect
