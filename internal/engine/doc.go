// Package engine implements a limiter: its lock, its clock, the pause, and the callers that sleep. The [Ledger] behind
// it varies.
//
// reserve.Limiter, reserve.Policy and reserve.Reservation are defined as the types here. A conversion of the pointer
// gives packages of this module the methods that users do not see:
//
//	(*engine.Limiter)(l).Outlook()
package engine
