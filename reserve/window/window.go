// Package window limits to so many permits in any stretch of time, exactly: what an
// API means by "100 requests a minute".
//
// A token bucket of 100 a minute that saves up a minute's worth lets 100 calls go at once, and a
// fresh one every 600 ms: 199 in its first minute. A counter that starts anew each
// minute lets 100 go at 11:59:59 and 100 more at 12:00:00. With a window the 101st goes a minute
// after the first, and never before:
//
//	limiter, err := window.New(100, time.Minute)
//
// # What is promised
//
// First come, first served. The first in the queue goes as soon as the permits used in the last per,
// less those that were given back, leave room for it. So in any half-open stretch (t-per, t], wherever it
// begins, go at most n permits that were kept. With 3 a second and nothing used, at 0 s:
//
//	Reserve(2)   ready now
//	Reserve(2)   at 1 s, when the first two have left the window
//	Reserve(1)   at 1 s as well: it would fit now, but nobody overtakes those that asked before
//	Reserve(1)   at 2 s, since at 1 s there are three
//
// A window has no prepayment and saves nothing beyond itself: a request waits until
// all of its permits fit, and one for more than n is refused with a *[reserve.SizeError].
//
// A caller that waits counts at its promised time, and goes within tens of microseconds of that. If the whole
// program stands still (SIGSTOP, a suspended machine) and a caller wakes more than 1 ms late, that counts as a
// pause: callers whose times have passed go as if time had stood still with them. With 100 each 100 ms,
// 64 callers due and a stop of 2 s, 100 go right after it and not 164. Code that sleeps by
// [reserve.Reservation.At] itself has no such protection.
//
// # Giving back
//
// When a request that waits is cancelled, or settled for less, those behind it move up. When one that
// has gone is, its permits are taken out of the window, as if they had not been used, and
// those that wait move up at once; if it has left the window there is nothing to give back. If the
// second of the four above is cancelled, the third goes at once and the fourth at 1 s. No promised time
// becomes later (except by a pause or a lower Retime).
//
// If a request is settled for more, the difference queues behind all that wait then. When its turn
// comes it is charged, whether there is room for it or not. The window then
// holds more than n, and nobody goes until there is room again: with 10 a second and 6
// used, Settle(9) leaves room for one, and Settle(16) for none until a second later.
//
// # Changes
//
// Stored is how many permits could be taken now; none while somebody waits. A pause stops the
// window's clock: what was used before it leaves the window later by as much.
//
// SetRate keeps n, and makes per n/rate seconds, to the nanosecond: with 100 a minute,
// SetRate(reserve.Per(100, time.Hour)) makes it 100 an hour. It holds for those that ask from then
// on; those that wait keep the window by which they were promised their time. With 3 a second, 3
// used at 0 s and a fourth promised for 1 s, SetRate to 3 a minute leaves that at 1 s; the next two
// wait until 1 minute, and one behind them until 1 minute and 1 s. Permits that have left the present window
// do not come back into a longer one.
//
// Retime changes the window of those that wait as well: in the example the fourth then waits until
// 1 minute. SetPolicy changes n and per, as SetRate does; a request for more than the new n keeps its
// time, or goes, after a Retime, when the window is empty.
//
// With a rate of +Inf per is 0, and each request for up to n permits goes as soon as those before it
// have gone. A window is no longer than 146 years.
//
// # What it takes
//
// 32 bytes for each request that has gone within the last per and for each that waits, their number
// rounded up to a power of two; those that went at one moment count as one, and those that were given
// back are taken out when they are more than half. So without a queue it is n requests at most, and
// one for each charge; a queue is bounded by [reserve.WithMaxWait]. 100 a minute takes 4 KiB;
// a million bytes a second, in calls of 1000 each, 32 KiB. The room is kept for next time.
//
// A request costs a few nanoseconds when it asks and when it goes, whatever the window holds. When
// something is given back, the times of those behind it are worked out again once they
// are asked for, in one pass, a few nanoseconds each: of the first for a sleeper, of all for a new request. So
// 10,000 that wait and give up in random order, each asked for its time before, take 0.15 s altogether.
// A request that is refused, and [reserve.Limiter.NextFree], pass over the requests that they would
// have to wait for.
//
// It is a sliding-window log, with those that wait in it as well as those that have gone.
package window

import (
	"time"

	"github.com/nextfree/pace/reserve"
)

// New returns a limiter that grants at most n permits in any stretch of per: New(100,
// time.Minute) for 100 a minute. It starts with none used.
//
// It returns a *[reserve.ValueError] if n is less than 1 or per is not positive, and a
// *[reserve.OptionError] for an option that does not apply: only [reserve.WithClock] and
// [reserve.WithMaxWait] do.
func New(n int, per time.Duration, opts ...reserve.Option) (*reserve.Limiter, error) {
	p, err := Policy(n, per, opts...)
	if err != nil {
		return nil, err
	}
	return p.Limiter(), nil
}

// Policy returns the policy of limiters like New's: to be shared, or had by many
// keys. Its errors are the same.
func Policy(n int, per time.Duration, opts ...reserve.Option) (*reserve.Policy, error) {
	if n < 1 {
		return nil, &reserve.ValueError{Package: "window", Name: "n", Value: n, Want: "at least 1 permit"}
	}
	if per <= 0 {
		return nil, &reserve.ValueError{Package: "window", Name: "per", Value: per, Want: "a positive duration"}
	}
	rate, length := reserve.Per(float64(n), per), min(int64(per), longest)
	return reserve.NewPolicy(reserve.Variant{
		Package: "window", Limiter: "a window",
		Ledger: func(now int64, _ func(int64) time.Time) reserve.Ledger { return newLedger(now, n, length, rate) },
		Change: func(now int64, of reserve.Ledger) { of.(*ledger).change(now, n, length, rate) },
	}, rate, opts...)
}
