// Package smooth is the arithmetic of pace: when a request for permits is granted, what it costs, and what a refund is
// worth. It has no clock, lock or goroutine.
//
// # The model
//
// The model is Guava's SmoothRateLimiter. A [Ledger] is a bucket of time, which fills as time passes, up to the worth
// of the stored permits. A request takes an interval for each permit. Paid later, it is granted when the bucket is not
// in debt, so the next request waits for its cost. Paid upfront, it waits until the bucket holds its cost, as in a
// classic token bucket (or GCRA's virtual scheduling, ITU-T I.371). In a limiter that warms up, stored permits lie
// beside the bucket, and a [Curve] has their price.
//
// # Time
//
// Times are nanoseconds (int64) on a clock of the caller's that never runs back. The bucket's level is the time when it
// is, or was, empty. Costs are rounded up to whole nanoseconds, and the next cost is less by the remainder: at 3/s
// requests are granted at 0, 333333334, 666666667 and 1000000000 ns. Sums saturate at 292 years.
//
// # Waiting and refunds
//
// At every moment the ledger is what it would be had it known from the start what it knows now. But no granted request
// is recalled, and no promised time becomes later, except by a pause or a lower Retime. Package internal/judge/model
// recomputes a bucket by these rules at each step.
//
// A request is granted when all amounts before it in the queue are paid. When a request gives up, or needs less, those
// behind it are granted earlier. A refund of a granted request gives back at most the room that the bucket had since
// (see headrooms). Permits used beyond a reservation are a request in the queue, if others wait.
//
// Paid upfront, the bucket may hold what the first waiting request needs, even if more than fits. When that request
// leaves, the next gets what is there, up to what fits or what it needs itself.
//
// A refund of what was sold before a change of the rate is worth as much as before. (Paid upfront, a request larger
// than the bucket gives back at most what the bucket held at its smallest, from the request on until it was granted.)
//
// # Memory
//
// A waiting request takes 16 bytes, and so does each request since the bucket was last full, up to 16 KiB.
package smooth
