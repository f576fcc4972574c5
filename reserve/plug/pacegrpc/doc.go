// Package pacegrpc paces the calls of gRPC clients, and limits the calls that servers get.
//
// A gRPC call is an HTTP request, a POST to /package.Service/Method with the metadata as headers. So an
// [outbound.Transport] paces it and an [inbound.Middleware] limits it, with their keys, costs and hooks. One Transport
// or Middleware may serve HTTP and gRPC.
//
// # Clients
//
// A call waits for its permits. If they would come after its deadline it fails at once, with DeadlineExceeded and the
// *[reserve.WaitError] inside; this package never returns ResourceExhausted, which is a server's word. [outbound.Host]
// is the target without its scheme, r.URL.Path the full method, r.Header the outgoing metadata of the context, without
// credentials per call.
//
// ResourceExhausted is a refusal, and so is Unavailable with a time or from Envoy's rate limiter. The time is that of
// RetryInfo or of the trailer grpc-retry-pushback-ms, the longer one. Headers and trailers such as RateLimit count too.
// A message that is too large for gRPC is no refusal.
//
// A stream takes its permits when it is opened, or with [Client.Messages] for each message that it sends. A refusal in
// the middle of a stream counts. [outbound.WithRetries] has no effect: an interceptor that retries belongs before
// these. What a retryPolicy of the service config retries is not paced.
//
// # Servers
//
// The interceptors of a [Server] pass the calls that a Middleware's tiers allow. [inbound.Endpoint] is the full method,
// r.Header the incoming metadata, r.RemoteAddr the peer, r.TLS its certificate. A refused call gets ResourceExhausted,
// or Unavailable for HTTP's 503, with a RetryInfo and the trailer grpc-retry-pushback-ms, by which gRPC's clients
// retry.
package pacegrpc
