// Package fair says who goes next: people before a batch, tenants by their shares, in front of any limit
// that pace has.
//
//	q, err := fair.New(limiter, []fair.Class{
//		{Name: "people", Priority: 1},
//		{Name: "batch"},
//	})
//	...
//	waited, err := q.Acquire(fair.With(ctx, "batch", ""), 1)
//
// A [Queue] is a [reserve.Reserver], and so are its classes: [Queue.Class] returns one that other packages
// take, such as outbound.New(nil, q.Class("batch")).
//
// # The order
//
// A higher priority goes first, always. Classes of one priority share by their weights, and so do tenants within a
// class: see [WithTenants]. The shares are of permits, not of requests. Take any stretch in which two classes (or two
// tenants of one class) both wait. What they get, each divided by its weight, differs by at most one request of each.
// That is start-time fair queueing.
//
// An idle class or tenant saves nothing up, owes nothing, and an idle tenant takes no memory. A tenant that
// asks for 1,000 permits and settles at 400 is charged 400: it goes earlier afterwards. Requests of one
// tenant go in the order in which they came.
//
// With Class.MaxAge a lower class can't be shut out. A request that has waited for so long goes as if its priority were
// one higher, beside the classes that are there. With Class.Limit a class leaves permits for others. Of a window of 100
// an hour, a batch whose own window is 70 an hour uses 70, and all of the 70 if no other class asks.
//
// # Time
//
// The queue binds late. Only the request that is the first now has a reservation at the limit. When a more urgent
// request arrives, the queue cancels that reservation and makes one for the other request. Because a Cancel is exact,
// nothing is lost. 1,000 calls of a batch (1 to 3 permits each) at 10/s, with 100 calls of people among them, take 3
// min 40 s in either order. First come, first served, people wait for up to 200 s; as a higher class, for 0.3 s at
// most, which is one slot.
//
// So a request in the queue has a forecast, not a promise: At says when it would go if no other came, and a more urgent
// one makes that later. Only Wait decides. A request whose forecast is too late for its deadline or maxWait is refused
// at once. Later it is refused as soon as it is certain that it can't go in time.
//
// A limiter that saves nothing (WithBurst(0)) loses time when a busy machine wakes a caller later than one slot. At
// thousands of permits a second, give it some milliseconds of burst.
//
// On Redis the queue reserves at the last moment, one call's time before the limit can grant the next request.
// Where several processes share a limit, each has a queue of its own: the order holds within a process.
package fair
