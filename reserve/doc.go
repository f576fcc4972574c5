// Package reserve is the one API of pace's limiters: a [Limiter] that promises
// permits, and the [Reservation] that it gives. A [Policy] says what is limited, and how; it comes
// from package pace (bursty, token bucket), warmup or window.
//
// # Which method
//
// Most callers should use [Limiter.Acquire]: it waits until the permits may be used.
// [Limiter.TryAcquire] takes them now or not at all. [Limiter.Reserve] says when, and leaves the
// waiting to the caller; its Reservation can be given back, or settled at what was
// really used. [All] asks several limiters at once.
//
// # Time
//
// Promised times are to the nanosecond. They become earlier when others give back what they had
// reserved, and later only by a pause or a lower [Limiter.Retime]. On
// Linux a wait ends, typically, within tens of microseconds of them; elsewhere within what the system's
// timers allow. With [WithClock] a limiter uses a fake clock, and one that is made in a
// testing/synctest bubble follows the bubble's time, exactly.
//
// # Errors
//
// A request that would wait for too long gets a *[WaitError], a value that makes no
// sense a *[ValueError], an option that does not fit an *[OptionError], a context
// that is done its cause. In each case nothing was taken.
//
// # Limiters of one's own
//
// A variant whose permits differ only in price is a smooth.Curve, one that counts differently a
// [Ledger]: see [NewPolicy] and [Variant]. Anything else that can promise permits is a
// [Reserver], and makes its reservations with [NewReservation].
package reserve
