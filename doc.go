// Package pace paces calls: mostly the calls that a program makes to somebody
// else's API.
//
// A limiter hands out permits at a rate. It is told of a request and answers at once
// when that may go; the request then pays for itself by making the next one wait.
// That is the model of Guava's RateLimiter, and it means that a request of any size
// is granted, that callers are served in order, and that everybody knows their time.
//
//	limiter, err := pace.NewBursty(50) // permits per second
//	...
//	if _, err := limiter.Acquire(ctx, 1); err != nil {
//		return err // the context ended, or its deadline comes too early
//	}
//	response, err := client.Do(request)
//
// Most callers want [reserve.Limiter.Acquire] as above. Who must not block uses
// TryAcquire; who has something else to do meanwhile, or wants to give permits
// back, uses Reserve and keeps the [reserve.Reservation].
//
// # A worked example
//
// NewBursty(5) allows 5 permits per second and saves up to one second's worth while
// it is idle. After 3 s without calls, 5 permits are stored:
//
//	Acquire(1) five times    go at once, from the store
//	Acquire(1)               goes at once, and borrows the first fresh permit
//	Acquire(1)               waits 200 ms, for what the one before it borrowed
//	Acquire(10)              waits another 200 ms, not for its own 10 permits
//	Acquire(1)               waits 2 s, for those
//
// # Where things are
//
// This package has the bursty limiter. Package warmup has the one that warms up.
// Package reserve is the API of both and what is built on it, and package smooth
// the arithmetic behind them.
package pace
