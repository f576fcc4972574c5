package engine

import (
	"iter"
	"time"

	"github.com/nextfree/pace/smooth"
)

// A Ledger is reserve.Ledger.
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

// A Forecaster is reserve.Forecaster.
type Forecaster interface {
	Behind(now int64, ahead iter.Seq[int], permits int) (ready int64)
	Forecast(now int64, n int) (ready int64)
}

// An Observer is reserve.Observer.
type Observer interface {
	Stop(now, until int64) bool
	Said(now int64, left float64, end int64)
}

// A Saver is reserve.Saver.
type Saver interface {
	AppendState(b []byte, now int64) []byte
}

// A UseTracker is reserve.UseTracker.
type UseTracker interface {
	Begin(now int64, slot smooth.Slot) smooth.Slot
	End(now int64, slot smooth.Slot) smooth.Slot
}

// A Variant is reserve.Variant.
type Variant struct {
	Package, Limiter string // in errors: "warmup", "a warming-up limiter"

	// Nil where the policy has a curve. Change and Load may be nil.
	Ledger func(now int64, wall func(now int64) time.Time) Ledger
	Change func(now int64, of Ledger)
	Load   func(state []byte, then int64, wall func(t int64) time.Time) (Ledger, error)

	// How often a time that follows the wall clock is looked at again; 0: never.
	Recheck      time.Duration
	StallIsPause bool // see checkStall
}
