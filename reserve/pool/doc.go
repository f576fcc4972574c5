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
// Requests wait in one queue, first come, first served. Only the first is bound to a member: the one that grants its
// permits earliest, or of several the one chosen least recently. If that is paused, or another one becomes earlier, the
// request is bound to the other. Exactly one member is charged. So 1,600 calls on members of 10, 5 and 1 a second take
// 99.9 s, as they would at 16 a second; in turns they take 532 s.
//
// Member.Tier says which members to prefer, such as capacity that is paid for already, and [Pool.Sticky] keeps a
// conversation at one member, because of the prompt that this keeps: both within [WithSlack].
//
// A member whose server refuses is stopped by its limiter's PauseUntil or by [Pool.PauseUntil], and one whose key is not
// valid any more by [Pool.Drop]. Requests go to others, unless these take longer.
//
// For another order, put package fair in front: fair.New(p.Reserver(), classes). [Pool.Of] says which member a
// reservation of that queue got.
//
// # Limits that can't tell
//
// Asking a limiter of this process when it would grant a request takes nothing. A limit on Redis, a key's limiter and
// limiters of your own can't be asked so. The pool reserves at the one that was earliest by the last answers. If another
// may be earlier, it reserves there too, and cancels one of the two.
package pool
