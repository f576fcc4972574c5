// Package late is a queue that binds late. Of all requests that wait in it, only the first holds a reservation at the
// limit behind it. Packages fair and pool, and outbound's classes and upstreams, are doors of it.
//
// In Guava's model the time of the next slot does not depend on which request takes it, and in pace a Cancel is exact.
// So the queue can decide at the last moment which request goes. Whenever another request becomes first, it cancels the
// reservation of the one before and reserves for the other. Nothing is lost by that.
//
// # Types
//
// A [Place] is a request: it stands in the queue, and it is the [reserve.Promise] behind the reservation that the
// caller has. It is waiting, bound, granted, or over. A hold is a reservation at the limit in the name of a place. The
// queue has at most one that is not granted. An [Order] says which place is first. A [Target] reserves.
//
// Two locks: Queue.mu guards the order, the places and who is bound, and is never held while the target reserves.
// Queue.binding is held while the queue looks which request is first and reserves for it, so that it makes one
// reservation at a time. It is taken before mu. A request that is not the first needs mu alone. So a call to Redis
// delays only the places that are about to be first.
//
// # A call, walked through
//
// A call arrives: Enter puts its place into the order. It is the first, so [Queue.look] binds it: the target reserves,
// and the hold says when. If that is now, the place is granted, and look binds the next one.
//
// If it is later, the caller waits: Place.Wait waits for the hold. So it learns from the limit itself when the time
// moves: it becomes earlier by a refund, and later by a pause. When it comes, the caller looks: it is still the first,
// so it is granted, and the caller binds the next place before it goes. If no caller waits for a bound place, because
// its caller does something else meanwhile, a timer looks in its stead.
//
// A more urgent call arrives: the order says that it is first. The queue takes the hold away from the bound place,
// cancels it, and binds the new one. The caller that slept on the hold sees that, and waits for its place to be
// bound again.
//
// A pause: the limit moves the time of the hold, and the caller sleeps on. The limit's watcher has the queue look
// again: a request whose deadline has become impossible is refused, and a pool binds another member.
//
// A cancel: a waiting place leaves the order, and a bound one gives its hold back. The next is bound. After the grant
// the limit takes the permits back, and the order takes the charge off the caller's account.
//
// A settle for less before the grant makes the request smaller: if it is bound it is bound anew, because a
// reservation settles only once. For more, the difference is charged at the grant. After the grant
// both the limit and the account get the difference, and the order may now say that another one is first.
//
// # Time
//
// A bound place has a promise, which becomes later if a more urgent request arrives. A waiting one has a forecast: when
// it would go if no other request came. So only Wait decides. Enter refuses a request whose forecast is too late. Later
// the queue refuses it as soon as its best case is too late. That is when the present hold's time, and the requests
// that are certain to go before it, leave no room for it.
//
// If the limit is remote, the queue asks it as late as it can. A grant of n permits that had to wait tells that the
// next is not before n / rate later. So the queue binds the next one only shortly before that, and a change of the
// first until then costs no call.
package late
