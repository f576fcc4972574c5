// Package keyed is a limiter for each key: for each user, host, route or tenant,
// for millions of them, in bounded memory.
//
//	perUser := keyed.New(func(user string) (*reserve.Policy, error) { return free, nil })
//	if !perUser.TryAcquire("ada", 1) {
//		// too many requests by ada; everybody else is served
//	}
//
// Most callers want [Limiters.Acquire], which waits, or [Limiters.TryAcquire], which
// does not. [Limiters.For] is one key's limiter, for everything that takes a
// [reserve.Reserver].
//
// # The model
//
// Every key has had its limiter since New was called; but a limiter that nobody has
// asked since can be worked out at any time, so it takes no memory. One that was
// asked is remembered until it is once more like an untouched one: nothing owed or
// promised, no pause, the policy's rate, as much stored. Then it is dropped, and
// nobody can tell.
//
// With a policy of 10/s that saves up to 10 permits, and New at 0 s: at 60 s a key
// that was never seen has 10 permits stored. It takes all of them, and is remembered;
// at 60.5 s it has 5. From 61 s on it has 10 again, as if nothing had happened, and is
// dropped. A key that takes 100 permits at once at 60 s is in debt until 69 s and full
// at 70 s; until then it is remembered, however many keys arrive.
//
// For that reason the number of keys is bounded without forgiving anybody: past
// [WithMaxKeys], a new key is refused with [ErrTooManyKeys], and no debt is forgotten.
//
// # Plans from a database
//
// The policy function finds a key's plan. Keep one policy for each plan, and say how a changed plan
// reaches a key that is remembered: by [WithTTL], or by [Limiters.Refresh] where the program changes
// the plan itself, or hears of it.
//
//	plans := map[string]*reserve.Policy{
//		"free": reserve.Must(window.Policy(100, time.Minute)),
//		"paid": reserve.Must(window.Policy(6000, time.Minute)),
//		"unlimited": reserve.Must(pace.Bursty(math.Inf(1))),
//	}
//	perTenant := keyed.New(func(tenant string) (*reserve.Policy, error) {
//		var plan string
//		err := db.QueryRow("SELECT plan FROM tenants WHERE id = $1", tenant).Scan(&plan)
//		if err != nil {
//			return nil, err // ErrNoRows: no such tenant
//		}
//		return plans[plan], nil
//	}, keyed.WithTTL(time.Minute))
//
// An upgrade from 100 to 6000 a minute then reaches a client that keeps asking within a minute, and
// at once by perTenant.Refresh(tenant). A downgrade does too, however hard the client tries. While the database
// fails, tenants that are remembered keep their policies; new ones get the error. [Limiters.Forget] ends
// that for one tenant, and forgives what it owes. Without WithTTL the function is called for each
// request of a tenant that is not remembered, and a tenant without a limit never is.
//
// # What it costs
//
// A key that takes permits which are to be had at once is a few numbers in a table:
// 75 to 90 bytes for a string, beside the string's own. One that was given a
// reservation, or that waited, was paused or had its rate changed, is a
// [reserve.Limiter], some 220 bytes more, until it is dropped.
//
// There is no goroutine, and nothing to close. Each call looks at two entries on average and
// drops those that are idle; so where nobody calls, nothing is dropped. The keys
// are spread over shards by a hash with a random seed, each behind a lock of its own,
// and none is held while the policy function runs.
package keyed
