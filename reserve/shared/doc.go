// Package shared is one limiter for many processes and machines. Its state is in Redis, Valkey, or any [Store]:
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
//	limiter, err := shared.New(goredis.Client(client), "api", reserve.Must(pace.Bursty(100)))
//
// The policy is that of any limiter. Its promises hold to 3 ns, by the store's clock. In one process, [reserve.Limiter]
// is a thousand times faster.
//
// # Where the state is kept
//
// [New] and [NewKeyed] keep it in Redis: one script, one key, one round trip. [NewIn] and [NewKeyedIn] keep it in a
// [Store]: packages file, postgres, natskv, goredis.Store on Redis, or [Memory] for tests. A Store can also keep
// windows and calendars, whose promised times don't move, and whose rate can't be set.
//
// # How it asks
//
// Requests that arrive during a call share the next: with 64 goroutines four times as many decisions, for a fifth of
// the server's time. Calls for many keys go as one pipeline. Within a process, callers queue first come, first served.
// A request that is decided too late gets nothing. The first call to a server has twice the timeout.
//
// Where the store is 100 ms away, a request takes 100 to 300 ms besides its wait for permits, but callers share these
// trips: of 1,000/s, four processes with 1 caller each get 39/s, and with 64 each all. [WithAhead] buys ahead: 963/s
// with 1 caller each.
//
// A limiter has nothing to close. At most 8 calls that don't return, as on a frozen disk, are left to themselves, and
// another each 10 s.
//
// # When the store fails
//
// [FailClosed] (the default) refuses every request, [FailOpen] grants every request, and [Local] limits each process
// alone. Grants of the last two are charged when the store is back, as of their time, at most two capacities for all
// processes together. While single calls fail, or take longer than their callers have, the last answer counts:
// [FailOpen] grants what that left (each process all, before its first answer), [Local] nothing before what is owed is
// paid.
//
// A store that refuses every fourth call for hours costs at most one capacity above the limit. So does an outage with
// [Local], if the shares add up to 1; [FailOpen] has no limit then. A proxy that repeats answers costs up to four
// capacities. While the store is away for some processes only, these get their shares and the others the whole rate:
// with Local(0.5) in one of two processes 150 % of it.
//
// Three failures in a row open a circuit, if no answer has come for 50 ms. So do eight in a row, and lost answers that
// may have charged a capacity. Then a caller at a time probes the store, after 50 ms, later at distances that double up
// to 400 ms, at the same moments in all processes. The others don't wait, unless no probe was made for longer than the
// distance. Three answers in a row close it. Each server of a cluster or ring has a circuit of its own.
//
// # What differs from a limiter in one process
//
//   - A limiter that the store does not know is full (a warming-up one is cold), also after a restart without data.
//   - Each process has its own policy and rate ([Limiter.SetRate]), and changes the limiter by asking. Permits stay as
//     far as they fit, or times if both capacities are times (pace.WithBurst). Where stored permits have a price, they
//     scale with the capacity. Processes with two policies together get at most the larger capacity and rate.
//   - Promised times don't move, but that of a request which settles for less. In a Store, permits that are given back
//     go to later requests, at once if that delays no promise. Requests older than the last 512, or than a setback of
//     the store's clock, give nothing back.
//   - In Redis, the queue shortens by the newest request if it is given back, and by earlier refunds directly before
//     it: after 1,000 callers have queued and given up, there is no queue. Elsewhere in the queue the time passes
//     unused, and its permits are deferred, at most a capacity, and 512 times: a request that would wait goes at once
//     if enough are deferred for it and for the largest promise that is still running. The rest is stored when nothing
//     is owed.
//   - A Cancel after the time of the permits gives back as many as would still be there, to within 2 % within 50
//     requests. If 300 to 900 of 1,000 are cancelled at the end, at most a quarter is lost.
//   - PauseUntil and Resume concern later requests. In Redis, a pause that ends before what is owed is paid changes
//     nothing. In a Store, what is owed is paid after the pause.
//   - A store's clock that is set back gives no permits and delays nobody; if it is set forward, that much debt is
//     forgiven.
//
// # What Redis needs
//
// Redis 5 to 8, Valkey or KeyDB: single, with a Sentinel, cluster or ring. Tested with Redis 7.0 and Valkey 8.0. Not
// Dragonfly, where the time in a script is 0 (dragonflydb/dragonfly#2555).
//
// When a master dies, permits that its replica has not heard of are granted again, at most one capacity, and promised
// times, too.
//
// An ACL user needs ~pace:* +eval +evalsha +get +set +time. A key takes 152 bytes (MEMORY USAGE) after one request, and
// 392 when drained. It lives for its debt, the time to fill, and a second. Eviction, by volatile-* or allkeys-*,
// forgets debt.
package shared
