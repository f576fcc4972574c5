// Package smooth is the arithmetic of pace: when a request for permits is granted, what it costs, and
// what a refund of it is worth. It is pure: no clock, no lock, no goroutine. Package reserve puts those
// around it; use that.
//
// # The model
//
// The model is that of Guava's SmoothRateLimiter. A [Ledger] has two numbers: the stored permits, and the
// time at which all that was granted is paid for. A request is granted at that time and moves it by what it
// costs, so the next request waits for it; paid upfront, the request waits for its own permits. Stored
// permits are taken first, at the price that a [Curve] says; the others are fresh, at one interval each.
//
// # Time
//
// Times are nanoseconds (int64) on a clock of the caller's that never runs back. Costs are float64
// nanoseconds. Times are rounded up, so that no stretch of time holds more than the rate gives: at 3/s
// requests are granted at 0, 333333334, 666666667 and 1000000000 ns. The part by which the last time was
// rounded up is remembered, so a rate of 3e9/s is kept as exactly as one of 3/s: there a nanosecond holds three
// permits, and they all go at its beginning. Sums saturate at the largest int64, 292 years.
//
// # Waiting and refunds
//
// A ledger that has made reservations has a history beside those two numbers. Its queue holds the amounts
// of the waiting requests, in nanoseconds: so each has its time, and when one of them gives up or needs
// less, all behind it are granted earlier. For granted requests it remembers how much room the store had
// (headrooms): no more than that comes back. See [Ledger.Return]. A list of the latest changes of the rate
// serves to value refunds of requests made before them: see [Ledger.SetRate].
//
// One rule covers all of it: at every moment the ledger is what it would be had it known from the start
// what it knows now; but no granted request is recalled, and no promised time becomes later, except by a
// pause or a lower Retime. That is a bucket which starts with what was stored, fills at the
// rate up to its capacity, and pays for each request at the time when that is granted, first come, first
// served: as soon as the bucket is not in debt or, paid upfront, holds what the request costs. (A classic
// token bucket is paid upfront. Its schedule is that of the leaky bucket and of GCRA's virtual scheduling,
// ITU-T I.371.) Package internal/model is that bucket, recomputed
// from scratch at each step, and package internal/conform holds the ledger against it.
//
// Where stored permits have a price, in a limiter that warms up, they are not in the bucket. A refund puts
// those that the request took back into the store at once, unless the store has been full since. Fresh permits
// whose time has passed are lost.
//
// # Memory
//
// A queue takes 8 bytes for each request that waits, 16 once something was refunded or if paid
// upfront, and 24 once requests have given up before others. The headrooms take at most 16 KiB, and no
// more than 16 bytes for each request since the store was last full. The last 64 changes of the rate
// take at most 1 KiB of headrooms each.
package smooth
