package engine

import (
	"iter"
	"time"

	"github.com/nextfree/pace/smooth"
)

// A Ledger is the arithmetic behind a limiter. reserve.Ledger is the same, with what the methods mean.
type Ledger interface {
	Reserve(now int64, permits int, latest int64) (slot smooth.Slot, ready int64, ok bool)
	Take(now int64, permits int) bool
	Charge(now int64, permits int)
	Return(now int64, slot smooth.Slot, kept int)
	Ready(now int64, number uint64) (ready int64, known bool)
	Pause(now, until int64) bool
	Resume(now int64) bool
	Rate() float64
	SetRate(now int64, permitsPerSecond float64)
	Retime(now int64, permitsPerSecond float64)
	Stored(now int64) float64
	NextFree(now int64) int64
}

// What some ledgers can do in addition.
type (
	// bounded: no request gets more than Max permits.
	bounded interface{ Max() int }
	// leveled: Level is Stored, but negative while permits are owed.
	leveled interface{ Level(now int64) float64 }
	// pausing: Paused is the end of the latest pause.
	pausing interface{ Paused() int64 }
	// forecaster: Behind says when a request would be ready behind others that have not been made. Ahead holds their
	// sizes, each at least 1; nil: none. It takes nothing.
	forecaster interface {
		Behind(now int64, ahead iter.Seq[int], permits int) (ready int64)
	}
	// idle: Idle reports whether nothing is owed and no request waits.
	idle interface{ Idle(now int64) bool }
	// persistent: AppendState appends what is left if all requests that wait give up now. Times in it are relative to
	// now, or those of the wall clock.
	persistent interface {
		AppendState(b []byte, now int64) []byte
	}
	// using: permits count by when they are used. Begin and End return the slot by which the request is known then.
	using interface {
		Begin(now int64, slot smooth.Slot) smooth.Slot
		End(now int64, slot smooth.Slot) smooth.Slot
	}
	// stalling: when the whole program stood still, that was a pause. Stalls is never called.
	stalling interface{ Stalls() }
)

// A Variant is a kind of limiter: see reserve.Variant.
type Variant struct {
	Package, Limiter string // in errors: "warmup", "a warming-up limiter"

	// Ledger makes the ledger of a limiter that begins now, Change gives this policy to the ledger of another, and Load
	// makes a ledger of what AppendState of another had appended at that time. Change and Load may be nil. All are nil
	// where the policy has a curve.
	Ledger func(now int64, wall func(now int64) time.Time) Ledger
	Change func(now int64, of Ledger)
	Load   func(state []byte, then int64, wall func(t int64) time.Time) (Ledger, error)
}
