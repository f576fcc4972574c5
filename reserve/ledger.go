package reserve

import "github.com/nextfree/pace/smooth"

// A Ledger is the arithmetic behind a [Limiter]: when a request goes, and what comes back of
// it. Limiters differ in their ledgers and in nothing else. It need not be safe for
// concurrent use, and must not block: the limiter calls it under its lock.
//
// Requests are served in order. Permits that are given back are used at once by those that wait; so a
// promised time may become earlier. It becomes later by a pause or a lower Retime, and otherwise never.
//
// Times are nanoseconds on a clock that never runs back.
//
// A ledger that can't grant every number of permits to one request has a method
// Max() int as well. It refuses what is larger, and the caller gets a *[SizeError].
// One whose limiters package keyed shall drop when they are like new has Idle(now int64) bool: that
// nothing it has sold is still to come or to be paid for, so that only what is stored matters.
// One that can hold permits, but grants requests of any size, has Capacity() float64.
// For [Limiter.Snapshot] it may have Level(now int64) float64, which is Stored where nothing is owed and
// negative otherwise, and Paused() int64, the end of the latest pause.
//
// A ledger may look ahead and take in batches: Behind(now int64, ahead iter.Seq[int], permits int) int64
// returns when a request would be ready after others of the sizes ahead (nil: none), all made now; Forecast(now
// int64, n int) int64 when the last of n requests for one permit would be, where Behind one request for n-1 is
// not the same; TakeUpTo(now int64, permits int) int takes what requests for one permit would get now. Without
// them [Limiter.Peek], [Limiter.Forecast] and [Limiter.TakeUpTo] use Reserve and Take.
type Ledger interface {
	// Reserve promises permits (at least 1), unless they would be ready after latest: then it
	// returns false and takes nothing, and ready says when that would have been.
	Reserve(now int64, permits int, latest int64) (slot smooth.Slot, ready int64, ok bool)
	// Take takes permits (at least 1) if they may be used now.
	Take(now int64, permits int) bool
	// Charge takes permits (at least 1) that were used already, behind all that wait.
	Charge(now int64, permits int)
	// Return takes back all permits of a slot but the first kept ones (fewer than it has), once.
	Return(now int64, slot smooth.Slot, kept int)
	// Ready returns when the slot of that number is ready, by what is known now. If its time
	// has come, that is when it was, or known is false: it was at the time that was promised
	// last, or before.
	Ready(now int64, number uint64) (ready int64, known bool)
	// Pause moves all that is to come as if time stood still until then; Resume ends that now. Each
	// reports whether it has changed anything.
	Pause(now, until int64) bool
	Resume(now int64) bool
	// Rate is in permits per second.
	Rate() float64
	// SetRate and Retime get a positive number, which may be +Inf: see [Limiter.SetRate].
	SetRate(now int64, permitsPerSecond float64)
	Retime(now int64, permitsPerSecond float64)
	// Stored returns the permits that are stored now, and NextFree when a request for one
	// permit would be ready. They take nothing.
	Stored(now int64) float64
	NextFree(now int64) int64
}

// bounded is a ledger that grants no request more than Max permits. Reserve and Take refuse
// what is larger.
type bounded interface{ Max() int }

// leveled is a ledger that tells how much is owed, and pausing one that tells how long it is paused.
type (
	leveled interface{ Level(now int64) float64 }
	pausing interface{ Paused() int64 }
)
