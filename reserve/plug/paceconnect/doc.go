// Package paceconnect paces the calls of Connect clients, and limits the calls that handlers get:
// connectrpc.com/connect, with its own protocol, gRPC's and gRPC-Web's.
//
//	paced, err := paceconnect.NewInterceptor(reserve.Must(outbound.New(nil, limiter)), nil) // a client's
//	client := pingv1connect.NewPingServiceClient(httpClient, url, connect.WithInterceptors(paced))
//
//	limited, err := paceconnect.NewInterceptor(nil, limits) // a handler's
//	mux.Handle(pingv1connect.NewPingServiceHandler(service, connect.WithInterceptors(limited)))
//
// A call is a request to /package.Service/Method. So an [outbound.Transport] paces it and an [inbound.Middleware]
// limits it, with the same keys, costs and hooks that other requests have. One Transport or Middleware may serve both.
//
// # Clients
//
// A call waits for its permits. If they would come after its deadline it fails at once, with CodeDeadlineExceeded and
// the *[reserve.WaitError] inside. Nothing that this package refuses is CodeResourceExhausted, which callers take for
// the server's word. Keys are functions of the request: [outbound.Host], r.URL.Path is the procedure, and r.Header the
// call's.
//
// CodeResourceExhausted is a refusal. So is CodeUnavailable if it comes with a time, from Envoy's rate limiter, or for
// a 429 of a proxy in between. The time is in a RetryInfo among the error's details, in Retry-After, or in
// grpc-retry-pushback-ms: the key is stopped until then. [outbound.Adaptive] finds the rate. A message that is too
// large is no refusal.
//
// A stream takes its permits before it sends or receives anything, or with [PerMessage] for each
// message that it sends. A refusal in the middle of a stream counts, too. The interceptor does not
// retry, and [outbound.WithRetries] has no effect.
//
// # Handlers
//
// A call passes all tiers of the Middleware, or is refused and charged by none. [inbound.Endpoint]
// is the procedure, r.Header the call's, r.RemoteAddr the peer, and r.Context() the call's. A
// refused call gets CodeResourceExhausted, or CodeUnavailable where HTTP's would have got 503, with
// a RetryInfo, Retry-After and grpc-retry-pushback-ms.
package paceconnect
