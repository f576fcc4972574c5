// Package pacegrpc paces the calls of gRPC clients, and limits the calls that servers get.
//
// A gRPC call is an HTTP request: a POST to /package.Service/Method of its authority, with the metadata as headers. So
// an [outbound.Transport] paces it and an [inbound.Middleware] limits it, with the same keys, costs and hooks that
// HTTP's requests have. One Transport or Middleware may serve both.
//
// # Clients
//
//	paced, err := pacegrpc.NewClient(reserve.Must(outbound.New(nil, limiter)))
//	...
//	conn, err := grpc.NewClient(target, grpc.WithUnaryInterceptor(paced.Unary), grpc.WithStreamInterceptor(paced.Stream))
//
// A call waits for its permits. If they would come after its deadline it fails at once, with DeadlineExceeded and the
// *[reserve.WaitError] inside. Nothing that this package refuses is ResourceExhausted, which callers take for the
// server's word. Keys are functions of the request: [outbound.Host] is the authority (the target without its scheme),
// and r.URL.Path the full method. r.Header is the outgoing metadata of the context. Credentials per call are added
// later, and not seen.
//
// ResourceExhausted is a refusal, and so is Unavailable if it comes with a time or from Envoy's
// rate limiter. The time is in a RetryInfo among the status's details or in the trailer
// grpc-retry-pushback-ms, the longer of both: the key is stopped until then. Headers and trailers
// are read as those of HTTP are, so RateLimit and the like count as well. [outbound.Adaptive] finds
// the rate. A message that is too large for gRPC is no refusal.
//
// A stream takes its permits when it is opened, or with [Client.Messages] for each message that it
// sends. A refusal in the middle of a stream counts, too. The interceptors do not retry, and
// [outbound.WithRetries] has no effect: an interceptor that retries belongs before them. What gRPC
// itself retries (a retryPolicy in the service config) happens behind them, and is not paced.
//
// # Servers
//
// The interceptors of a [Server] pass the calls that a Middleware's tiers allow: by user and method, by method, and
// overall, all or nothing. [inbound.Endpoint] is the full method, r.Header the incoming metadata, r.RemoteAddr the
// peer, r.TLS its certificate, and r.Context() the call's. A refused call gets ResourceExhausted, or Unavailable where
// HTTP's would have got 503. With it come a RetryInfo and the trailer grpc-retry-pushback-ms, by which gRPC's own
// clients retry.
package pacegrpc
