package reserve

import "github.com/nextfree/pace/internal/engine"

// A Ledger is the arithmetic behind a [Limiter]: when a request is granted, and what a refund is worth. Write one for a
// [Variant] of your own. Its methods, and what they mean, are listed by
//
//	go doc github.com/nextfree/pace/internal/engine.Ledger
//
// A ledger that can do more implements [Changer], [Observer] or [UseTracker].
type Ledger = engine.Ledger

// A Changer is a [Ledger] whose terms, what its policy says, can be replaced. It has the methods AppendTerms(b []byte)
// []byte and Change(now int64, to Ledger): see engine.Changer, beside the Ledger.
type Changer = engine.Changer

// An Observer is a [Ledger] that can be told what a server says. It has the methods Stop(now, until int64) bool and
// Said(now int64, left float64, end int64): see engine.Observer, beside the Ledger.
type Observer = engine.Observer

// A UseTracker is a [Ledger] that counts permits by when they are used: see [Reservation.Begin]. It has the methods
// Begin and End(now int64, slot smooth.Slot) smooth.Slot: see engine.UseTracker, beside the Ledger.
type UseTracker = engine.UseTracker
