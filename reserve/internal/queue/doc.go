// Package queue decides who goes next, and where: for packages fair, pool and outbound, and for calls to language
// models. It knows nothing of HTTP.
//
// A request, a [Place], has options, one of which is to serve it. An [Option] is a list of limits. An [Order] says which
// request is the first. The first gets the option that is free first, and all limits of that are charged when it goes.
//
// Only the first holds a reservation. If another one becomes the first, or another option becomes earlier, the queue
// cancels that and makes another. This costs nothing: in Guava's model the next slot's time does not depend on which
// request takes it, and a Cancel is exact.
//
// # A request, walked through
//
// [Queue.Enter] puts the place into the order. If it is the first, [Queue.look] binds it: each option is asked how long
// it would take, which takes nothing. If all limits of the best one have room now, permits are reserved there, and the
// place is granted. Otherwise a permit is reserved only at the limit that has room last. There the caller sleeps, in
// [Place.Wait]; if none does, a timer is set. Then the queue looks again. If another limit has no room by then, the place
// waits at that one instead. After four rounds it keeps what it has.
//
// When a more urgent place arrives, the first loses its hold, and waits to be bound again. When a limit changes, its
// watcher makes the queue look for a better option.
//
// A place lets others pass that don't need what it waits for: its class's own limit, or an option that is closed to it
// and open to them. It keeps its hold meanwhile.
//
// # Locks
//
// Queue.mu guards the order and the places, and is never held while a permit is reserved. Queue.binding is held while
// the queue looks, and taken before mu. Where a Reserver may block, binding is held apart from callers with a deadline.
//
// # Time
//
// A bound place has a promise, which becomes later if a more urgent one arrives. A waiting one has a forecast. So only
// Wait decides, and a Delay is at least 1 ns until it has. Enter refuses a place whose forecast is too late; later the
// queue refuses it when its best case is: what the hold of the first, and places that certainly go before it, leave.
package queue
