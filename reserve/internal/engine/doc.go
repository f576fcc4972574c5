// Package engine is the one implementation of a limiter: its lock, its clock, the callers that sleep, and the pause. What
// varies is the [Ledger] behind it.
//
// Package reserve gives these types to users: reserve.Limiter, reserve.Policy and reserve.Reservation are defined as
// [Limiter], [Policy] and [Reservation], so each is the other after a conversion of the pointer, which costs nothing:
//
//	(*engine.Limiter)(l).Outlook()
//	(*reserve.Limiter)(e)
//
// So a user sees the methods that package reserve defines and no others, and the packages of this module see both.
package engine
