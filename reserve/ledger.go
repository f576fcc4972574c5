package reserve

import "github.com/nextfree/pace/smooth"

// A Ledger is the arithmetic behind a [Limiter]: when a request is granted, and what a refund is worth.
// Limiters differ in their ledgers and in nothing else. A Ledger need not be safe for concurrent use
// and must not block, because the limiter calls it under its lock.
//
// Requests are served in order. Waiting requests use refunded permits at once, so a promised time may become
// earlier. It becomes later only by a pause or a lower Retime.
//
// Times are nanoseconds on a clock that never runs back.
//
// These methods are optional:
//   - Max() int, if the ledger can't grant every number of permits to one request. It refuses larger
//     requests, and their callers get a *[SizeError].
//   - Capacity() float64, if it can hold permits but grants requests of any size.
//   - Idle(now int64) bool: nothing is owed and no request waits, so that only the stored permits matter.
//     Package keyed then drops limiters that are as good as new.
//   - Level(now int64) float64 and Paused() int64, for [Limiter.Snapshot]: Stored, but negative while
//     permits are owed; and the end of the latest pause.
//   - Behind(now int64, ahead iter.Seq[int], permits int) int64: when a request would be ready, if requests of the
//     sizes ahead (nil: none) and then this one were made now. It takes nothing.
//   - Forecast(now int64, n int) int64: when the last of n requests for one permit would be ready, if that
//     is not the same as behind one request for n-1. It takes nothing.
//   - TakeUpTo(now int64, permits int) int takes what requests for one permit, made one by one, would get now.
//   - Waits(now int64, number uint64) bool: that request certainly waits. It should take less time than Ready.
//   - Recheck() time.Duration, if times may become earlier by themselves because they follow the wall clock:
//     the limiter looks at them again so often.
//   - Begin(now int64, slot smooth.Slot) smooth.Slot and End likewise, if permits count by when they are used: see
//     [Reservation.Begin]. Each returns the slot by which the request is known from then on.
//   - AppendState(b []byte, now int64) []byte, for [Limiter.AppendBinary].
//   - Stalls(), a marker that is never called. If the ledger has it, the limiter treats it as a pause when the whole
//     program stood still, so that a caller wakes more than 1 ms late.
type Ledger interface {
	// Reserve promises permits (at least 1) if they are ready by latest. Otherwise it returns false
	// and takes nothing, and ready says when they would have been ready.
	Reserve(now int64, permits int, latest int64) (slot smooth.Slot, ready int64, ok bool)
	// Take takes permits (at least 1) if they may be used now.
	Take(now int64, permits int) bool
	// Charge takes permits (at least 1) that were used already, behind all requests that wait.
	Charge(now int64, permits int)
	// Return takes back all permits of a slot but the first kept ones (fewer than it has), once.
	Return(now int64, slot smooth.Slot, kept int)
	// Ready returns when the slot of that number is ready, by what is known now. For a granted request
	// it returns when that was granted. If the ledger no longer knows, known is false. Then the request was granted no
	// later than was last promised.
	Ready(now int64, number uint64) (ready int64, known bool)
	// Pause makes time stand still until then: all later times move by as much. Resume ends the pause
	// now. Each reports whether it changed anything.
	Pause(now, until int64) bool
	Resume(now int64) bool
	// Rate is in permits per second.
	Rate() float64
	// SetRate and Retime get a positive number, which may be +Inf: see [Limiter.SetRate].
	SetRate(now int64, permitsPerSecond float64)
	Retime(now int64, permitsPerSecond float64)
	// Stored returns how many permits are stored now, and NextFree when a request for one permit, made
	// now, would be ready. They take nothing.
	Stored(now int64) float64
	NextFree(now int64) int64
}
