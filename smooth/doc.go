// Package smooth is the arithmetic of pace: which stretch of time a request for
// permits gets, what it costs, and how it is given back. It is pure: no clock, no
// lock, no goroutine. Package reserve puts those around it; use that.
//
// # The model
//
// The model is that of Guava's SmoothRateLimiter. A [Ledger] remembers two things:
// the permits stored while nobody asked, and the time at which the queue of those
// who did ask ends. A request is granted at the end of the queue and makes the
// queue longer by what it costs, so it pays for itself by making the next one
// wait (or, paying upfront, by waiting itself). Stored permits are taken first, at
// the price that a [Curve] says; the rest is fresh, at one interval each.
//
// # Time
//
// Times are nanoseconds (int64) on a clock of the caller's that never runs back.
// Costs are float64 nanoseconds; the part of a nanosecond that does not fit a slot
// is carried to the next one, so that a rate of 3e9/s is kept as exactly as one of
// 3/s. Sums saturate at the largest int64, 292 years.
//
// # Waiting, and giving back
//
// Beside those two numbers a ledger that has made reservations keeps two lists. A queue has
// what those that wait will cost, in nanoseconds: so each has its time, and when one of them gives
// up or needs less, the times of all behind it are earlier at once. And the rooms, which are what
// must be known of those that have gone, to tell how much of permits that come back would be
// there if they had never been taken: see [Ledger.Return].
//
// The rule for both: at every moment the ledger is what it would be had it known from the start
// what it knows now; but nobody that has gone is called back, and no promised time becomes later,
// by a pause or a lower Retime apart. It is the rule of a bucket that starts at what was stored,
// fills at the rate up to its capacity, and is emptied by each request at the time it goes, first
// come, first served: as soon as the bucket is not in debt or, paid upfront, holds what the
// request costs. (A classic token bucket is paid upfront. Its schedule is that of the leaky
// bucket and of GCRA's virtual scheduling, ITU-T I.371, whose theoretical arrival time is next.)
// Package internal/model is that bucket, recomputed from scratch at each step; the tests hold the
// ledger against it.
//
// Where stored permits have a price, in a limiter that warms up, the bucket holds no time: those
// that were taken from the store go back to it at once, and time that has passed is gone.
//
// # Memory
//
// A queue takes 8 bytes for each request that waits, 16 once something was given back or if paid
// upfront; the rooms at most 16 KiB, and no more than 16 bytes for each request since the store was
// last full.
package smooth
