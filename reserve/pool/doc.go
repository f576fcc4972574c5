// Package pool makes several members serve requests: API keys, deployments of a model, regions. A request gets the
// member that is free first.
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
// Requests wait in one queue, first come, first served. Only the first is bound, to the member that grants its permits
// earliest, or of several the one chosen least recently; if another becomes earlier, to that. Exactly one member is
// charged. 1,600 calls on members of 10, 5 and 1 a second take 99.9 s, as at 16 a second.
//
// Member.Tier says which members to prefer, such as capacity that is paid for already. [Pool.Sticky] keeps a
// conversation at a member that has its prompt. Both wait at most [WithSlack] longer.
//
// If a member's server refuses, stop it by its limiter's PauseUntil or by [Pool.PauseUntil]; if its key is no longer
// valid, [Pool.Drop] it.
//
// For another order, put package fair in front: fair.New(p.Reserver(), classes). [Pool.Of] says which member a
// reservation of that queue got.
//
// # Limits that can't tell
//
// A limit on Redis, a key's limiter and your own limiters can't say when they would grant a request. The pool reserves
// at the member that was earliest by the last answers; if another may be earlier, there too, and cancels one of them.
package pool
