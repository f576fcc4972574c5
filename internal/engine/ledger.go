package engine

import (
	"iter"

	"github.com/nextfree/pace/internal/smooth"
)

// A Ledger is the arithmetic behind a limiter: when a request is granted, and what a refund is worth. The limiter calls
// it under its lock.
//
// Requests are served in order, and use refunded permits at once: a promised time may become earlier, and later only by
// a pause or a lower rate.
//
// Times are nanoseconds on a clock that never runs back. A number of permits is at least 1.
type Ledger interface {
	// Reserve promises permits if they are ready by latest. Otherwise it returns false and the ready time, and takes
	// nothing.
	Reserve(now int64, permits int, latest int64) (slot smooth.Slot, ready int64, ok bool)
	// Take takes permits if they may be used now. TakeUpTo takes as many as it can, at most those, and returns how
	// many.
	Take(now int64, permits int) bool
	TakeUpTo(now int64, permits int) int
	// Charge takes permits that were used already, behind all requests that wait.
	Charge(now int64, permits int)
	// Return takes back all permits of a slot but the first kept ones, once.
	Return(now int64, slot smooth.Slot, kept int)

	// Ready returns when the slot of that number is ready, or was granted. If the ledger no longer knows, that was no
	// later than last promised.
	Ready(now int64, number uint64) (ready int64, known bool)
	// Waits reports whether the request of that number certainly waits. It may return false where Ready takes long.
	Waits(now int64, number uint64) bool
	// Idle reports whether nothing is owed and no request waits.
	Idle(now int64) bool

	// Pause makes time stand still until then, Resume ends that, and Paused returns its end. Pause and Resume report
	// any change.
	Pause(now, until int64) bool
	Resume(now int64) bool
	Paused() int64

	// Rate is in permits per second. SetRate and Retime get a positive number, which may be +Inf.
	Rate() float64
	SetRate(now int64, permitsPerSecond float64)
	Retime(now int64, permitsPerSecond float64)

	// Size returns how many permits can be stored, and the largest request that is granted; math.MaxInt: any is.
	Size() (capacity float64, largest int)
	// Stored returns how many permits are stored now; Level is the same, but negative while permits are owed: see
	// Snapshot. NextFree returns when a request for one permit, made now, would be ready. None takes anything.
	Stored(now int64) float64
	Level(now int64) float64
	NextFree(now int64) int64
	// Behind returns when a request would be ready behind requests of these sizes (nil: none).
	Behind(now int64, ahead iter.Seq[int], permits int) (ready int64)
	// Forecast returns when the last of n requests for one permit would be ready, each made when the one before is
	// granted.
	Forecast(now int64, n int) (ready int64)

	// AppendState appends what is left if all waiting requests give up now, for Variant.Load. Times are relative to
	// now, or the wall clock's.
	AppendState(b []byte, now int64) []byte
}

// A Changer is a Ledger whose terms can be replaced.
type Changer interface {
	AppendTerms(b []byte) []byte
	// Change gives it the terms of another ledger of its kind, from now on.
	Change(now int64, to Ledger)
}

// An Observer is a Ledger that can be told what a server says.
type Observer interface {
	// Stop is Pause, but permits used before leave the ledger meanwhile.
	Stop(now, until int64) bool
	// Said says that the server has that many permits left until end.
	Said(now int64, left float64, end int64)
}

// A UseTracker is a Ledger that counts permits by when they are used: see limit.Begin.
type UseTracker interface {
	// Begin and End say that the use of a slot's permits begins, or is over, and return the request's slot from then
	// on.
	Begin(now int64, slot smooth.Slot) smooth.Slot
	End(now int64, slot smooth.Slot) smooth.Slot
}
