// Package shared is one limiter for many processes and machines: its state is in
// Redis or Valkey. The three lines that make a limiter shared:
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
//	limiter, err := shared.New(goredis.Client(client), "api", reserve.Must(pace.Bursty(100)))
//	waited, err := limiter.Acquire(ctx, 1)
//
// The policy is that of any limiter: bursty or warming up, upfront or not, with a longest wait. Its
// promises are the same to 2 ns: one script does the arithmetic of package smooth on one key,
// "pace:{api}", by the server's clock; no process's clock matters. A program that needs no second
// machine has no use for this package: reserve.Limiter is a thousand times faster.
//
// # How it asks
//
// While a call is on its way to Redis, the requests that arrive wait, and go together in the next
// call. With 64 goroutines that is four times as many decisions as one call each, and a fifth of
// the server's time. Calls for many keys that wait at the same moment go as one pipeline. Callers
// that queue for permits get them first come, first served within a process. A call that reaches
// Redis after its callers have given up charges nothing: it carries that time on the server's
// clock, which a first call, of a [Limiter] or of all keys of a [Keyed], asks for. (The keys of a
// cluster's nodes share one: there it is as exact as the nodes' clocks agree, and nodes that
// disagree by more than the timeout cost a second round trip.)
//
// # A key that is too hot for one Redis
//
// With [WithLease] each process buys permits in advance and hands them to its own callers at the
// times that Redis promised: millions of decisions a second from a few processes, with some
// dozens of calls. Its comment says what that costs.
//
// # When Redis fails
//
// [FailClosed] (the default) refuses, [FailOpen] grants, [Local] limits each process alone at a
// share of the rate. Permits that the last two have granted are charged when Redis is back: at most
// a store of them, less those that may have been charged by calls whose answers were lost, and less
// those that have flowed into a store since. All processes together charge two stores at most, so
// that nobody is refused for long. A
// call takes at most the timeout, 50 ms ([WithTimeout]); one that tries again and then asks, half
// as much again. After three failures, or when a store of permits may have been charged by calls
// whose answers were lost, nobody waits any more: one caller tries again, first after 50 ms, then
// less and less often, down to every 400 ms, at the same moments in all processes, and Redis must
// answer three times in a row. A server that was restarted without its data has forgotten all debt,
// and begins with a full store.
//
// A limiter without leases has no goroutine: its callers do all the work. With [WithLease] one is
// started for each purchase in advance, and one by a timer when permits have expired; each ends
// after its calls to Redis. There is nothing to close.
//
// # What differs from a limiter in one process
//
//   - A limiter that Redis does not know has a full store (cold, for a warming-up one).
//   - The rate is each process's own ([Limiter.SetRate]); stored permits scale with the store
//     whenever one with another rate asks, so a new version may be rolled out slowly.
//   - Promised times don't move: other processes hold them. So Cancel, and Settle at less, give
//     back in two ways. At the end of the queue time is taken off it: the newest reservation, and
//     with it all those just before it that were given back earlier, in any order. 1,000 callers
//     that queue and all give up leave no queue. Anywhere else the time passes unused, and its
//     permits are deferred, as many as the store still has room for. A request that would have to
//     wait goes at once if enough is deferred for it and for the largest promise that is still
//     running. The rest joins the store when nothing is owed any more. No permit is sold twice. The
//     script remembers 512 stretches that were given back before or between reservations that wait;
//     more are lost.
//   - A Cancel after the time of the permits gives back as well: as many as would still be there
//     had they never been granted.
//   - PauseUntil and Resume concern requests from then on. Retime scales the debt only where nobody
//     waits.
//   - A server whose clock is set back costs nobody anything; one that is set forward forgives that
//     much debt.
//
// # What Redis needs
//
// Redis 5 to 8, Valkey or KeyDB, of any kind: single, replicated with a Sentinel, cluster (one key,
// so one node). Tested with Redis 7.0 and Valkey 8.0; the others run the same scripts. Not Redis
// before 5, where a script that has asked for the time may not write, nor Dragonfly, where the time
// in a script is 0 (dragonflydb/dragonfly#2555).
//
// When a master dies, its limiters are back at the next try after a replica has taken its place.
// The last permits that the master granted may not have reached the replica, which then grants them
// again: at most a store.
//
// An ACL user needs ~pace:* +eval +evalsha +get +set +time. A key lives as long as its debt and the
// time to fill, and a second more. Evict by volatile-* only if forgetting debt is fine.
//
// The state is packed binary. The text of the first version is read, but that version can't read
// what this one writes, and says so (WRONGTYPE): while both run, give this one a prefix of its own.
package shared
