// Package queue decides which request goes next, and where: for packages fair, pool and outbound. It knows nothing of
// HTTP.
//
// A request, a [Place], is served at one of its options. An [Option] is a list of limits, all of which are charged when
// the request goes. Package order says which request is first. It gets the option that is free first.
//
// Only the first holds a reservation. If another place becomes the first, or another option earlier, the queue cancels
// it and makes another, at no cost: in Guava's model the next slot's time does not depend on the request that takes it,
// and a Cancel is exact.
//
// # A request, walked through
//
// [Queue.Enter] puts the place into the order. If it is the first, [Queue.look] binds it: it asks each option for its
// wait, and reserves at all limits of the best. If they have room, the place is granted. Otherwise it keeps only the
// reservation at the limit that has room last, and its caller sleeps there, in [Place.Wait], or a timer is set. Then
// the queue looks again: if another limit has no room by then, the place waits there, for four rounds at most.
//
// A place that waits for its class's own limit, or to which an option is closed, lets others pass that don't need what
// it waits for, and keeps its hold.
//
// # Changes
//
// Queue.version grows with every change: of a limit, whose watcher tells so, or when a place leaves; but not with the
// queue's own reservations and refunds. If a hold's version is old, the queue compares the options again, so no change
// is lost. A place that moves to another option asks there before it gives up what it has, and keeps its position at
// limits that both have.
//
// Limits that can't be asked (a key's, a store's, a Reserver of the user's) are known by their last answer, unless that
// was an error. A place that waits elsewhere asks them again after a change or an error, each time later.
//
// # Locks
//
// Queue.mu guards the order and the places, and is never held while a permit is reserved. Queue.binding is held while
// the queue looks, and taken before mu; where a Reserver may block, callers with a deadline don't hold it. Nothing of
// the user's runs under mu: clocks are read before, and its promises and rates are asked in [Queue.step]. A caller
// takes a few steps for others at most, then a goroutine goes on.
//
// # Time
//
// A bound place has a promise, which becomes later if a more urgent place arrives; a waiting place has a forecast. So
// only Wait decides, and a Delay is at least 1 ns until then. Enter refuses a place whose forecast is too late, and the
// queue later when its best case is: behind the hold of the first and the places that certainly go before it.
package queue
