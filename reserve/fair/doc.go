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
// a class: see [WithTenants]. While two of them both wait, what they get, each divided by its weight, differs by at
// most one request of each: that is start-time fair queueing. A tenant's requests go in order.
//
// An idle class or tenant saves nothing up and owes nothing. A tenant that asks for 1,000 permits and settles at 400 is
// charged 400.
//
// Class.MaxAge limits how long a class is shut out. Class.Limit leaves permits for other classes: of a window of 100 an
// hour, a batch with its own window of 70 an hour uses at most 70.
//
// # Time
//
// Only the first request has a reservation at the limit. When a more urgent request arrives, the queue cancels that and
// makes another, and nothing is lost: 1,000 calls of a batch at 10/s with 100 calls of people among them take as long
// in either order. First come, first served, people wait for up to 200 s; as a higher class, for at most 0.3 s.
//
// So At is a forecast, which comes true if no other request comes. Only Wait decides.
//
// A limiter that saves nothing (WithBurst(0)) loses time when a busy machine wakes a caller later than a slot. At
// thousands of permits a second, give it some milliseconds of burst.
//
// On Redis the queue reserves a call's time before the limit can grant the next request. Each process has its own queue
// and order.
package fair
