// Package shared is one limiter for many processes and machines. Its state is in Redis or Valkey, or in any store that
// can replace a value atomically. Two lines make a limiter shared:
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
//	limiter, err := shared.New(goredis.Client(client), "api", reserve.Must(pace.Bursty(100)))
//
// The policy is that of any limiter: bursty or warming up, upfront or not, with a longest wait. Its promises are the
// same to 3 ns. All processes count by the store's clock, so their own clocks don't matter. A program that needs one
// process only has no use for this package: [reserve.Limiter] is a thousand times faster.
//
// # Where the state is kept
//
// [New] and [NewKeyed] keep it in Redis: one script does the arithmetic of package smooth on one key, "pace:{api}",
// in one round trip. [NewIn] and [NewKeyedIn] keep it in a [Store]: the process that holds the value makes the ledger of
// it that a limiter in one process has, asks that, and saves it. Everything else is the same for both. [Memory] is a
// store for tests. Packages file, postgres and natskv, beside this one, have others.
//
// # Windows, and quotas by the calendar
//
// A store, but not Redis's script, can also keep the policies of packages window and calendar. They mean what they mean
// in one process, but promised times don't move. SetRate does not apply. The periods of a calendar follow the store's
// clock if that is set back. With [Local] each process alone keeps its share of the window or the period, which it
// begins with nothing used.
//
// # Giving back in a store
//
// In a store, but not in Redis, a request that is given back is as if it had never been made, as of its own time. Its
// permits are for requests made afterwards. These go at once if that delays no promise. Each of the last 512 requests
// can be given back, in whatever order. What older ones give back is lost, and so is what was granted before the
// store's clock was set back.
//
// # How it asks
//
// While a call to the store is on its way, the requests that arrive wait, and go together in the next call. With 64
// goroutines that makes four times as many decisions as one call each, and takes a fifth of the server's time. Calls
// for many keys that wait at the same moment go as one pipeline. Within a process, callers that queue for permits get
// them first come, first served. A call that reaches the store after its callers have given up charges nothing: each
// call carries the time at which they do, on the store's clock. To learn that clock, the first call of a [Limiter], or
// of all keys of a [Keyed], asks twice. A cluster or a ring has a clock, a pipeline and a circuit for each server.
//
// # When the store fails
//
// [FailClosed] (the default) refuses. [FailOpen] lets each process use the whole limit alone, and [Local] a share of it.
// Both grant nothing before what the last answer said is owed has been paid. Their grants are charged when the store is
// back, as of the time at which they were made. The store forgives what has overflowed since. After an outage all
// processes together charge about two capacities at most, so no caller is refused for long.
//
// So a store that refuses every fourth call for hours lets the processes have at most one capacity more than the limit.
// The same holds for outages with [Local], if the shares add up to 1. With [FailOpen] each of n processes without a
// store has the limit to itself: n times the limit.
//
// A call takes at most the timeout, 500 ms ([WithTimeout]). One that probes the store first takes half as much again.
// Three failures in a row, and no answer for 50 ms, open a circuit: then only one caller at a time probes the store, and
// the others don't wait. A store that answers other calls meanwhile opens none.
// The circuit also opens when lost answers may have charged a whole capacity. The first probe is after 50 ms.
// The distances double up to 400 ms, at the same moments in all processes. The store must answer three times in a row.
// If no caller has come for longer than that, callers that come together wait for the first one's probe. Of a cluster
// or a ring only the keys of the server that failed are concerned.
//
// A Redis server that was restarted without its data has forgotten all debt, and begins with a full store.
//
// A limiter has no goroutine: its callers do all the work. There is nothing to close.
//
// # What differs from a limiter in one process
//
//   - A limiter that the store does not know is full (a warming-up one is cold).
//   - The rate is each process's own ([Limiter.SetRate]). Stored permits scale with the capacity whenever a process
//     with another rate asks, so a new version may be rolled out slowly.
//   - Promised times don't move, since other processes hold them. In Redis, Cancel and Settle at less give back in two ways. At
//     the end of the queue the time is taken off it. This is the time of the newest reservation, and of all just before
//     it that were given back earlier, in any order. After 1,000 callers have queued and given up there is no queue.
//     Anywhere else the time passes unused, and its permits are deferred, as many as still fit. A request that would
//     have to wait goes at once if enough permits are deferred for it and for the largest promise that is still
//     running. The rest is stored when nothing is owed any more. No permit is sold twice. At most 512 stretches that
//     were given back between reservations that wait are remembered. The permits of others are lost.
//   - A Cancel after the time of the permits gives back as well: as many as would still be there if they had
//     not been granted. What comes back within 50 requests is worth what it should be to within 1 %. Where 300
//     to 900 of 1,000 requests came back at the end, in any order, 4 to 20 % of that was lost.
//   - PauseUntil and Resume concern requests from then on. In Redis a pause that ends before what is owed is paid
//     changes nothing. In a store, as in one process, what is owed is paid after the pause.
//   - A store's clock that is set back gives no permits and keeps no caller waiting. One that is set forward
//     forgives that much debt.
//
// # What Redis needs
//
// Redis 5 to 8, Valkey or KeyDB, of any kind: single, replicated with a Sentinel, cluster or ring. Tested with Redis
// 7.0 and Valkey 8.0. The others run the same scripts. Redis before 5 is not supported: there a script that has asked
// for the time may not write. Nor is Dragonfly, where the time in a script is 0 (dragonflydb/dragonfly#2555).
//
// When a master dies, its limiters are back at the first probe after a replica has taken its place. The last permits
// that the master granted may not have reached the replica, which then grants them again: at most one capacity.
//
// An ACL user needs ~pace:* +eval +evalsha +get +set +time: the last three are commands in the script. A key takes 136 bytes (MEMORY USAGE) after one request,
// and 392 when it is drained. It lives for as long as its debt, the time to fill, and a second more. Evict by
// volatile-* only if forgetting debt is fine.
package shared
