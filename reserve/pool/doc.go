// Package pool is several members that can serve a request: API keys, deployments of a model, regions. A
// request gets the one that is free first.
//
//	keys, err := pool.New([]pool.Member[string]{
//		{Value: "key-a", By: reserve.Must(pace.NewBursty(10))},
//		{Value: "key-b", By: reserve.Must(pace.NewBursty(5))},
//	})
//	...
//	lease, err := keys.Acquire(ctx, 1)
//	call(lease.Value())
//
// # Which member
//
// Requests wait in one queue, first come, first served. Only the first is bound to a member: to the one that grants its
// permits earliest. If its member is paused meanwhile, or another becomes earlier by a refund or the end of a pause,
// the request is bound to that one. So 1,600 calls on members of 10, 5 and 1 a second take 99.9 s, as they would at 16
// a second. In turns they take 532 s. Exactly one member is charged. Of several that are free at the same time, the one
// that has been chosen least recently gets the request.
//
// Tiers say which members to prefer, such as capacity that is paid for already: see Member.Tier and
// [WithSlack]. [Pool.Sticky] keeps the requests of a conversation at one member, because of the prompt that
// it keeps.
//
// A member whose server refuses is stopped by the PauseUntil of its limiter, or by [Pool.PauseUntil]. No
// request waits for it then, unless all others take longer. [Pool.Drop] is for a key that has become
// invalid. If all are stopped, a request waits for the earliest, or gets a *[reserve.WaitError] with that
// time.
//
// # Classes
//
// For an order other than first come, first served, put package fair in front: fair.New(p.Reserver(),
// classes). [Pool.Of] says which member a reservation of the queue got.
//
// # Limits that can't tell
//
// The pool asks limiters of this process when they would grant a request, which takes nothing. A limit on Redis, a
// key's limiter and limiters of one's own can't be asked so. The pool reserves at the one that was earliest by the last
// answers. If another turns out to be possibly earlier, the pool reserves there too, and cancels one of the two.
package pool
