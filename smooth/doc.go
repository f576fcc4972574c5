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
// What a request buys is a [Slot]: a stretch of time that is nobody else's. All
// that pace promises follows from slots that never overlap.
//
// # Time
//
// Times are nanoseconds (int64) on a clock of the caller's that never runs back.
// Costs are float64 nanoseconds; the part of a nanosecond that does not fit a slot
// is carried to the next one, so that a rate of 3e9/s is kept as exactly as one of
// 3/s. Sums saturate at the largest int64, 292 years.
//
// # Giving back
//
// A slot may be given back in any order and at any time; see [Ledger.Return].
package smooth
