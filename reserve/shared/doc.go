// Package shared is one limiter for many processes and machines: its state is in
// Redis or Valkey. The three lines that make a limiter shared:
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
//	limiter, err := shared.New(goredis.Client(client), "api", reserve.Must(pace.Bursty(100)))
//	waited, err := limiter.Acquire(ctx, 1)
//
// The policy is that of any limiter: bursty or warming up, upfront or not, with a
// longest wait. Its promises are the same to 2 ns: one script does the arithmetic of package smooth on one
// key, "pace:{api}", by the server's clock; no process's clock matters. A program that needs no second machine
// has no use for this package: reserve.Limiter is a thousand times faster.
//
// # How it asks
//
// While a call is on its way to Redis, the requests that arrive wait, and go together in the
// next call. With 64 goroutines that is four times as many decisions as one call each, and a
// fifth of the server's time. Those who queue for permits get them first come, first served within a
// process. A call that reaches Redis after its callers have given up charges nothing: it carries
// that time on the server's clock, which a first call, of a Limiter or of all keys of Limiters, asks for. (The keys of a
// cluster's nodes share one: there it is as exact as the nodes' clocks agree, and nodes that disagree
// by more than the timeout cost a second round trip.)
//
// # When Redis fails
//
// [FailClosed] (the default) refuses, [FailOpen] grants, [Local] limits each process alone at a
// share of the rate; what these granted is charged when Redis is back, at most a store of it,
// less what has flowed into a store since. A call takes at most the
// timeout, 50 ms ([WithTimeout]). After three failures nobody waits any more: one caller
// tries again every 50 ms, then less and less often, down to once a second. There is no goroutine, and nothing to close. A server that was
// restarted without its data has forgotten all debt, and begins with a full store.
//
// # What differs from a limiter in one process
//
//   - A limiter that Redis does not know has a full store (cold, for a warming-up one).
//   - The rate is each process's own ([Limiter.SetRate]); stored permits scale with the store whenever
//     one with another rate asks, so a new version may be rolled out slowly.
//   - Cancel: the newest reservation is taken back as if it had never been, and with it those
//     just before it that were cancelled, the last 32 of them: callers that queue and all give up leave no queue. An older one's time is not sold again:
//     its permits are set aside, and are stored when the debt is paid. One whose time has come
//     gives back what would still be there had it not been granted.
//     No permit is sold twice, and no promised time moves.
//   - PauseUntil does not move what was promised: the processes that hold those promises can't be told.
//   - A server whose clock is set back costs nobody anything; one that is set forward forgives that much debt.
//
// # What Redis needs
//
// Redis or Valkey (tested with Redis 7.0), of any kind: single, replicated, cluster (one key, so one node). An ACL user needs
// ~pace:* +eval +evalsha +get +set +time. A key lives as long as its debt and
// the time to fill, and a second more. Evict by volatile-* only if forgetting debt is fine.
package shared
