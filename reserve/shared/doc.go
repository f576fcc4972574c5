// Package shared is one limiter for many processes and machines. Its state is in Redis or Valkey, or in any [Store]:
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
//	limiter, err := shared.New(goredis.Client(client), "api", reserve.Must(pace.Bursty(100)))
//
// The policy is that of any limiter, and its promises hold to 3 ns, by the store's clock. In one process,
// [reserve.Limiter] is a thousand times faster.
//
// # Where the state is kept
//
// [New] and [NewKeyed] keep it in Redis: one script does the arithmetic of package smooth on one key, "pace:{api}",
// in one round trip. [NewIn] and [NewKeyedIn] keep it in a [Store]: packages file, postgres, natskv, or [Memory] for
// tests. The process that updates the value restores the ledger of a limiter in one process, asks it, and saves it.
//
// A Store can also keep windows and calendars, whose promised times don't move there, and whose rate can't be set.
//
// # How it asks
//
// Requests that arrive while a call is on its way go together in the next call: with 64 goroutines four times as
// many decisions as with a call each, for a fifth of the server's time. Calls for many keys go as one pipeline.
// Within a process, callers that queue for permits get them first come, first served. A call that reaches the store
// after its callers' time charges nothing. To learn the store's clock, the first call asks twice. Each server of a
// cluster or ring has a clock, a pipeline and a circuit of its own.
//
// A limiter has no goroutine: its callers do all the work. There is nothing to close.
//
// # When the store fails
//
// [FailClosed] (the default) refuses. [FailOpen] grants every request. [Local] limits each process alone, at a share of
// the rate, and grants nothing before what the last answer said is owed has been paid. Grants of the last two are
// charged when the store is back, as of their time, and the store forgives what has overflowed since. After an outage
// all processes together charge about two capacities at most, so no caller is refused for long.
//
// So a store that refuses every fourth call for hours lets the processes have at most one capacity more than the
// limit. The same holds for outages with [Local], if the shares add up to 1. With [FailOpen] nothing limits what is
// granted during an outage.
//
// A call takes at most the timeout, 500 ms ([WithTimeout]), or half as much again if it probes the store first.
// Three failures in a row open a circuit, if no answer has come for 50 ms, and eight do in any case; so do lost answers
// that may have charged a capacity. Then one caller at a time probes the store, and the others don't wait. The first
// probe is after 50 ms; the distances double up to 400 ms, at the same moments in all processes. Three answers in a row
// close the circuit. If nobody has probed for longer than the distance, callers wait for the first probe.
//
// A Redis server that restarts without its data begins with a full store.
//
// # What differs from a limiter in one process
//
//   - A limiter that the store does not know is full (a warming-up one is cold).
//   - The rate is each process's own ([Limiter.SetRate]). Stored permits scale with the capacity when a process with
//     another rate asks.
//   - Promised times don't move. In a Store, a request that is given back is as if it had never been made: its permits
//     are for later requests, which go at once if that delays no promise. This holds for the last 512 requests. What
//     older ones give back is lost, and what was granted before the store's clock was set back.
//   - In Redis, the time of the newest request, and of all just before it that were given back earlier, comes off the
//     queue. After 1,000 callers have queued and given up, in any order, there is no queue. Elsewhere in the queue the
//     time passes unused, and its permits are deferred, as many as still fit. A request that would wait goes at once
//
// if
//
//	  enough are deferred for it and for the largest promise that is still running. The rest is stored when nothing is
//	  owed. At most 512 such stretches are remembered. No permit is sold twice.
//	- A Cancel after the time of the permits gives back as many as would still be there. Within 50 requests that is
//	  right to within 1 %. Where 300 to 900 of 1,000 came back at the end, 4 to 20 % was lost.
//	- PauseUntil and Resume concern requests from then on. In Redis, a pause that ends before what is owed is paid
//	  changes nothing. In a Store, what is owed is paid after the pause.
//	- A store's clock that is set back gives no permits and delays nobody. One that is set forward forgives that much
//	  debt.
//
// # What Redis needs
//
// Redis 5 to 8, Valkey or KeyDB: single, with a Sentinel, cluster or ring. Tested with Redis 7.0 and Valkey 8.0. Not
// Redis before 5, where a script that has asked for the time may not write. Not Dragonfly, where the time in a
// script is 0 (dragonflydb/dragonfly#2555).
//
// When a master dies, the permits that its replica has not heard of are granted again: at most one capacity.
//
// An ACL user needs ~pace:* +eval +evalsha +get +set +time: the last three are commands in the script. A key takes
// 136 bytes (MEMORY USAGE) after one request, and 392 when drained. It lives for its debt, the time to fill, and a
// second. Eviction, by volatile-* or allkeys-*, forgets debt.
package shared
