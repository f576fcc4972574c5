// Package smooth is the arithmetic of pace: when a request for permits is granted, what it costs, and
// what a refund of it is worth. It is pure: no clock, no lock, no goroutine. Package reserve puts those
// around it; use that.
//
// # The model
//
// The model is that of Guava's SmoothRateLimiter. A [Ledger] is a bucket that holds time. It fills as time passes, up to
// what the stored permits are worth. A request takes what its permits cost, one interval each. Paid later, it is granted
// when the bucket is not in debt, so the next request waits for it. Paid upfront, it waits until the bucket holds its cost.
// (A classic token bucket is paid upfront. Its schedule is that of the leaky bucket and of GCRA's virtual scheduling,
// ITU-T I.371.) Stored permits that have a price, in a limiter that warms up, lie beside the bucket, and a [Curve] says
// what they cost.
//
// # Time
//
// Times are nanoseconds (int64) on a clock of the caller's that never runs back. The level of the bucket is one time:
// when it is, or was, empty. What a request costs is a whole number of nanoseconds, rounded up, so that no stretch of time
// holds more than the rate gives: at 3/s requests are granted at 0, 333333334, 666666667 and 1000000000 ns. What an amount
// was rounded up by is taken off the next one. So a rate of 3e9/s is kept as exactly as one of 3/s: after an idle time one
// permit goes in the first nanosecond, and three in each one after it. Sums saturate at the largest int64, 292 years.
//
// # Waiting and refunds
//
// A ledger that has made reservations has a history. Its queue holds the amounts of the waiting requests. A request is
// granted when all amounts before it have been paid, so when one gives up or needs less, all behind it are granted
// earlier. For granted requests the history remembers how much room the bucket had (headrooms): no more than that comes
// back. See [Ledger.Return]. What was used beyond a reservation is a request in the queue, if others wait.
//
// One rule covers all of it: at every moment the ledger is what it would be had it known from the start
// what it knows now; but no granted request is recalled, and no promised time becomes later, except by a
// pause or a lower Retime. Package internal/judge/model is a bucket that is recomputed from scratch by that rule at each step,
// and package internal/judge/conform holds the ledger against it.
//
// Paid upfront, the bucket may hold what the first waiting request needs, if that is more than fits. When that request
// leaves, the next one gets what is there, up to what fits or what it needs itself.
//
// # Other rates
//
// Retime keeps permits: those stored (as far as they still fit), owed, and waited for. SetRate keeps times: of what is
// owed, and of all that wait; what is stored scales with the capacity. A refund of what was sold before a change is worth
// as much as before, with one exception: where the capacity is a number of permits, and SetRate comes while something is
// owed or waits, time that is owed stays and time that is stored scales. Then a refund is worth the lesser of both.
//
// # Memory
//
// A queue takes 16 bytes for each request that waits. The headrooms take at most 16 KiB, and no more than 16 bytes for
// each request since the bucket was last full.
package smooth
