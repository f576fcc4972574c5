// Package queue decides who goes next, and where. It is the queue of packages fair, pool and outbound, and of calls to
// language models, and knows nothing of HTTP.
//
// A request, a [Place], has options, one of which is to serve it. An [Option] is a list of limits. An [Order] says which
// request is the first. The first gets the option that is free first, and all limits of that are charged when it goes.
//
// The queue binds late: only the first request holds a reservation. If another one becomes the first, or another option
// becomes earlier, the queue cancels that and makes another. Nothing is lost by it: in Guava's model the time of the
// next slot does not depend on which request takes it, and a Cancel is exact.
//
// # A request, walked through
//
// [Queue.Enter] puts the place into the order, under Queue.mu. If it is the first, [Queue.look] binds it: the limits of
// each option are asked how long it would take, which takes nothing, and the best option is chosen. If the last of its
// limits has room now, permits are reserved at all of them, and the place is granted. Otherwise a permit is reserved
// only at the limit that has room last, and the caller sleeps there, in [Place.Wait], or a timer does if no caller waits.
// When the time comes, the queue looks: the other limits are asked too, and if one of them has no room by then, the
// place waits at that one instead. After four rounds it keeps what it has.
//
// When a more urgent place arrives, the hold of the first is cancelled, and its caller waits to be bound again. A pause
// moves the time of the hold; its caller sleeps on, and a watcher of the limit makes the queue look for a better option.
//
// A place that waits for something that others don't need lets them pass: a class that waits for its own limit, and a
// request to which an option is closed that others have. It keeps its hold meanwhile.
//
// # Locks
//
// Queue.mu guards the order and the places, and is never held while a permit is reserved. Queue.binding is held while
// the queue looks, so that it makes one reservation at a time. It is taken before mu. Where a Reserver may block,
// binding is held apart from callers that have a deadline.
//
// # Time
//
// A bound place has a promise, which becomes later if a more urgent one arrives. A waiting one has a forecast: when it
// would go if no other came. So only Wait decides, and a Delay is at least 1 ns until it has. Enter refuses a place whose
// forecast is too late. Later the queue refuses it when its best case is: when the hold of the first, and the places
// that certainly go before it, leave no room.
package queue
