// Package pace is a rate limiter, made for programs that call the API of another service.
//
// A limiter hands out permits at a rate, in the order of requests. Each request is told at once when it may proceed. If
// the limiter owes nothing, that is now, and the next request waits for the permits that this one took. This is the
// model of Guava's RateLimiter.
//
// Most callers want [reserve.Limiter.Acquire], as in the first example. A caller that must not block uses TryAcquire. A
// caller that may give permits back uses Reserve and keeps the [reserve.Reservation].
//
// # Which limiter
//
//   - [NewBursty] saves up permits while it is idle, by default for a second. With WithBurst(0) it saves nothing, and
//     no two calls are closer than the interval.
//   - [NewTokenBucket] is full at the start, and a request waits for its own permits, as in
//     golang.org/x/time/rate.
//   - Package warmup has a limiter that begins slowly after an idle time.
//   - Package reserve/window has one for "100 a minute", exactly, and package reserve/calendar one for
//     "10,000 a day, reset at midnight".
//
// All are a [reserve.Limiter], with the same methods (go doc reserve.Limiter lists them). In the folder reserve,
// package keyed has a limiter for each key. Package fair puts callers in order, and package pool uses several keys as
// one. There are limits on bytes (stream), HTTP clients (outbound), HTTP servers (inbound), and language models
// (outbound/llm). Package shared is one limiter for several machines. Package pacetest is for tests, and plug has
// adapters for gRPC, Connect, Kubernetes, the SDKs of AWS and Azure, and metrics.
package pace
