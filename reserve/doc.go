// Package reserve is the API of pace's limiters. A [Limiter] makes promises of permits: a [Reservation] each. A
// [Policy] says what is limited and how. Policies come from package pace (bursty, token bucket), warmup, window and
// calendar.
//
// Most callers should use [Limiter.Acquire]. [All] asks several limiters at once. What else can promise permits is a
// [Reserver], and makes its reservations with [NewReservation].
//
// # Time
//
// Promised times are exact to the nanosecond. On Linux a wait typically ends within tens of microseconds of its time,
// elsewhere as the system's timers allow. In a testing/synctest bubble times are exact.
//
// While a laptop's lid is shut, the monotonic clock of Linux and macOS stands still. On Linux a limiter finds that out
// within a minute (of waits longer than a day, a 1,440th). On macOS a wait, a pause and a window last as much longer.
// Calendars follow the wall clock everywhere.
package reserve
