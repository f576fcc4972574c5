// Package keyed has a limiter for each key (user, host, tenant): millions of them in bounded memory.
//
//	perUser := keyed.New(func(user string) (*reserve.Policy, error) { return free, nil })
//	if !perUser.TryAcquire("ada", 1) {
//		// too many requests by ada; everybody else is served
//	}
//
// Most callers want [Limiters.Acquire], which waits, or [Limiters.TryAcquire]. [Limiters.For] is a key's limiter, as a
// [reserve.Reserver].
//
// # The model
//
// A new key behaves as if its limiter had been idle since New was called: empty right after New, and full a burst
// later. A key that was asked is remembered until it is like a new key again.
//
// Take a policy of 10/s that saves up to 10 permits, and New at 0 s. At 60 s a new key has 10 permits stored, takes all
// of them, and is remembered until 61 s. A key that takes 100 permits at once at 60 s is in debt until 69 s, and
// remembered until 70 s.
//
// So the number of keys is bounded, and no debt is forgotten.
//
// # Plans from a database
//
// The policy function finds a key's plan, one policy for each plan. A changed plan reaches a remembered key by
// [WithTTL], or by [Limiters.Refresh] where the program knows of the change.
//
//	plans := map[string]*reserve.Policy{
//		"free": reserve.Must(window.Policy(100, time.Minute)),
//		"paid": reserve.Must(window.Policy(6000, time.Minute)),
//		"unlimited": reserve.Must(pace.Bursty(math.Inf(1))),
//	}
//	perTenant := keyed.New(func(tenant string) (*reserve.Policy, error) {
//		var plan string
//		err := db.QueryRow("SELECT plan FROM tenants WHERE id = $1", tenant).Scan(&plan)
//		switch {
//		case errors.Is(err, sql.ErrNoRows):
//			return nil, keyed.ErrUnknown // no such tenant, or none any more
//		case err != nil:
//			return nil, err
//		}
//		return plans[plan], nil
//	}, keyed.WithTTL(time.Minute))
//
// A new plan then reaches a client that keeps asking within a minute, and at once by perTenant.Refresh(tenant). While
// the database fails, remembered tenants keep their policies, and new tenants get the error. Without WithTTL the
// function is called for each request of a tenant that is not remembered.
//
// # What it costs
//
// A key that only took permits at once takes 75 to 90 bytes, beside the string's own. A key that reserved, waited, was
// paused, or had its rate or policy changed is a [reserve.Limiter] until it is dropped: some 220 bytes more.
//
// Nothing has to be closed: each call looks at two entries on average and drops idle ones. Each shard of keys has a
// lock, which is not held while the policy function runs.
package keyed
