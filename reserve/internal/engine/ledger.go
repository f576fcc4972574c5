package engine

import (
	"iter"
	"time"

	"github.com/nextfree/pace/smooth"
)

// A Ledger is the arithmetic behind a limiter: reserve.Ledger, which says what the methods mean.
type Ledger interface {
	Reserve(now int64, permits int, latest int64) (slot smooth.Slot, ready int64, ok bool)
	Take(now int64, permits int) bool
	TakeUpTo(now int64, permits int) int
	Charge(now int64, permits int)
	Return(now int64, slot smooth.Slot, kept int)
	Ready(now int64, number uint64) (ready int64, known bool)
	Waits(now int64, number uint64) bool
	Idle(now int64) bool
	Pause(now, until int64) bool
	Resume(now int64) bool
	Paused() int64
	Rate() float64
	SetRate(now int64, permitsPerSecond float64)
	Retime(now int64, permitsPerSecond float64)
	Size() (capacity float64, largest int)
	Stored(now int64) float64
	Level(now int64) float64
	NextFree(now int64) int64
}

// A Forecaster is a ledger that can be asked ahead: see reserve.Forecaster.
type Forecaster interface {
	Behind(now int64, ahead iter.Seq[int], permits int) (ready int64)
	Forecast(now int64, n int) (ready int64)
}

// An Observer is told what a server says: reserve.Observer.
type Observer interface {
	Stop(now, until int64) bool
	Said(now int64, left float64, end int64)
}

// A Saver is a ledger that can be saved: see reserve.Saver.
type Saver interface {
	AppendState(b []byte, now int64) []byte
}

// A UseTracker counts permits by when they are used: reserve.UseTracker.
type UseTracker interface {
	Begin(now int64, slot smooth.Slot) smooth.Slot
	End(now int64, slot smooth.Slot) smooth.Slot
}

// A Variant is a kind of limiter: see reserve.Variant.
type Variant struct {
	Package, Limiter string // in errors: "warmup", "a warming-up limiter"

	// Nil where the policy has a curve. See reserve.Variant. Change and Load may be nil.
	Ledger func(now int64, wall func(now int64) time.Time) Ledger
	Change func(now int64, of Ledger)
	Load   func(state []byte, then int64, wall func(t int64) time.Time) (Ledger, error)

	// How often a time is looked at again, because it follows the wall clock; 0: never.
	Recheck      time.Duration
	StallIsPause bool // see checkStall
}
