// Package queue decides which request goes next, and where: for packages fair, pool and outbound. It knows nothing of
// HTTP.
//
// A request, a [Place], is served at one of its options. An [Option] is a list of limits. Classes and tenants say which
// request is first. The first gets the option that is free first. All limits of the option are charged when the request
// goes.
//
// Only the first holds a reservation. If another place becomes the first, or another option earlier, the queue cancels
// the reservation and makes another. This costs nothing: in Guava's model the next slot's time does not depend on the
// request that takes it, and a Cancel is exact.
//
// # A request, walked through
//
// [Queue.Enter] puts the place into the order. If it is the first, [Queue.look] binds it: it asks each option for its
// wait, and reserves at all limits of the best. If they have room, the place is granted. Otherwise it keeps only the
// reservation at the limit that has room last. The caller sleeps there, in [Place.Wait], or a timer is set. Then the
// queue looks again. If another limit has no room by then, the place waits at that limit instead, for four rounds at
// most.
//
// When a more urgent place arrives, the first loses its hold. When a limit changes, its watcher makes the queue look.
//
// A place lets others pass that don't need what it waits for: its class's own limit, or an option that is closed to it
// and open to them. It keeps its hold.
//
// # Locks
//
// Queue.mu guards the order and the places, and is never held while a permit is reserved. Queue.binding is held while
// the queue looks, and taken before mu. Where a Reserver may block, callers with a deadline don't hold binding.
//
// # Time
//
// A bound place has a promise, which becomes later if a more urgent place arrives. A waiting place has a forecast. So
// only Wait decides, and a Delay is at least 1 ns until then. Enter refuses a place whose forecast is too late. Later
// the queue refuses it when its best case is: behind the hold of the first and the places that certainly go before it.
package queue
