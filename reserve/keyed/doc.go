// Package keyed has a limiter for each key (user, host, tenant): millions of them in bounded memory.
//
// [New] makes them of a function that returns a key's policy. Most callers want [Limiters.Acquire],
// which waits, or [Limiters.TryAcquire]. [Limiters.For] is a key's limiter, as a [reserve.Reserver].
//
// # The model
//
// A new key behaves as if its limiter had been idle since New was called: empty right after New, and full a burst
// later. A key that was asked is remembered until it is like a new key again. So the number of keys is bounded, and no
// debt is forgotten.
//
// Take a policy of 10/s that saves up to 10 permits, and New at 0 s. A key that takes 10 permits at 60 s is remembered
// until 61 s, and a key that takes 100 until 70 s.
//
// # Plans from a database
//
// The policy function finds a key's plan, and returns one policy for each plan (the example of WithTTL). A changed plan
// reaches a remembered key by [WithTTL], or at once by [Limiters.Refresh]. While the database fails, remembered keys
// keep their policies, and new keys get the error. Without WithTTL the function is called for each request of a key
// that is not remembered.
//
// # What it costs
//
// A key that only took permits at once takes 75 to 90 bytes, beside the string's own. A key that reserved, waited, was
// paused, or had its rate or policy changed is a [reserve.Limiter] until it is dropped: some 220 bytes more.
//
// Nothing has to be closed: each call looks at two entries on average and drops idle ones.
package keyed
