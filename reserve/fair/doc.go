// Package fair orders requests in front of any limit: people before a batch, tenants by their shares.
//
//	q, err := fair.New(limiter, []fair.Class{
//		{Name: "people", Priority: 1},
//		{Name: "batch"},
//	})
//	...
//	waited, err := q.Acquire(fair.With(ctx, "batch", ""), 1)
//
// A [Queue] is a [reserve.Reserver], and so are its classes: outbound.New(nil, q.Class("batch")).
//
// # The order
//
// A higher priority goes first, always. Classes of a priority share permits by their weights, and so do tenants within
// a class: see [WithTenants]. While two classes (or two tenants of a class) both wait, what they get, each divided by
// its weight, differs by at most one request of each: that is start-time fair queueing. A tenant's requests go in
// order.
//
// An idle class or tenant saves nothing up and owes nothing. A tenant that asks for 1,000 permits and settles at 400 is
// charged 400.
//
// Class.MaxAge limits how long a class is shut out. Class.Limit leaves permits for other classes: of a window of 100 an
// hour, a batch with its own window of 70 an hour uses at most 70, also if no other class asks.
//
// # Time
//
// Only the first request has a reservation at the limit. When a more urgent request arrives, the queue cancels that and
// makes another, and nothing is lost: 1,000 calls of a batch (1 to 3 permits each) at 10/s, with 100 calls of people
// among them, take 3 min 40 s in either order. First come, first served, people wait for up to 200 s; as a higher
// class, for at most 0.3 s, a slot.
//
// So At is a forecast, which comes true if no other request comes. Only Wait decides. A request whose forecast is too
// late for its deadline or maxWait is refused at once, and later as soon as it certainly can't go in time.
//
// A limiter that saves nothing (WithBurst(0)) loses time when a busy machine wakes a caller later than a slot. At
// thousands of permits a second, give it some milliseconds of burst.
//
// On Redis the queue reserves a call's time before the limit can grant the next request. Each process has its own queue
// and order.
package fair
