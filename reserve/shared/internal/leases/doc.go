// Package leases buys permits of a shared limiter in advance and hands them to the callers of one process. It is for a
// key that is too hot for one Redis. It is experimental. shared.WithLease is the way to it, and says what leases cost.
//
// A [Buyer] buys from a [Seller], the shared limiter, of which it knows five methods. A purchase is a [Lot]: a stretch
// of the shared limiter's time. The permits of all lots are in a pool. It is the ledger of a limiter of this process,
// and gives them to callers at the times that the store promised. The buyer buys when a caller asks for more than the
// pool has, and before the pool is empty. How many is said in goal.go. What is left of a lot, a horizon after its end,
// goes back.
package leases
