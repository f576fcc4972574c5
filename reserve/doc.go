// Package reserve is the API of pace's limiters. A [Limiter] makes promises of permits: a [Reservation] each. A
// [Policy] says what is limited and how. Policies come from package pace (bursty, token bucket), warmup, window and
// others.
//
// # Which method
//
// Most callers should use [Limiter.Acquire]: it waits until the permits may be used. [Limiter.TryAcquire] takes them
// now or not at all, and [Limiter.TakeUpTo] as many as there are. [Limiter.Reserve] returns when they may be used, and
// its Reservation can be cancelled, or settled at the permits really used. [All] asks several limiters at once.
// [Limiter.Peek], [Limiter.Forecast] and [Limiter.Snapshot] take nothing.
//
// # Time
//
// Promised times are exact to the nanosecond. They become earlier when other callers give permits back, and later only
// by a pause or a lower [Limiter.Retime]. On Linux a wait typically ends within tens of microseconds of its time,
// elsewhere as the system's timers allow; [WithSlack] trades that for processor time. [WithClock] sets a fake clock. In
// a testing/synctest bubble times are exact.
//
// While a laptop's lid is shut, the monotonic clock of Linux and macOS stands still. On Linux a limiter finds that out
// within a minute (of waits longer than a day, a 1,440th). On macOS a wait, a pause and a window last as much longer.
// Calendars follow the wall clock everywhere.
//
// # Errors
//
// A wait that is too long is a *[WaitError], a request larger than the limiter ever grants a *[SizeError], a value that
// makes no sense a *[ValueError], and an option that does not fit an *[OptionError]. A context that is done returns its
// cause (context.Cause). In each case nothing was taken.
//
// # Limiters of your own
//
// What can promise permits is a [Reserver], and makes its reservations with [NewReservation].
package reserve
