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
// In any half-open stretch (t-per, t], wherever it begins, at most n permits fall that
// were granted and not cancelled; those promised for later count, too. A request
// gets the earliest time at which that holds, in full, and no time that was promised moves. So
// requests of one size go first come, first served; and where a larger one has to wait for room,
// a smaller one may still go before it, if that delays it by nothing. With 3 a second
// and nothing used, at 0 s: Reserve(2) is ready now, Reserve(2) at 1 s, Reserve(1) now,
// Reserve(1) at 1 s.
//
// A window has no prepayment and saves nothing beyond itself: a request waits until
// all of its permits fit, and one for more than n is refused with a *[reserve.SizeError].
//
// Cancel gives back the permits' place at their time, whether that has come or not:
// who asks next may have it if it lies ahead; if it is past, it is as if it had not been used.
// Settle does the same with what was too much. What was missing counts as used at
// the time of Settle: the window then holds more than n, and nobody else goes until there is room
// again. A pause stops the window's clock: what was used before it leaves the
// window later by as much.
//
// Stored is how many permits could be taken now. SetRate keeps n, and makes per n/rate
// seconds, to the nanosecond: with 100 a minute, SetRate(reserve.Per(100, time.Hour)) makes it 100 an hour. What
// had left the shorter window stays out of the longer one. With a rate of +Inf per
// is 0, and each request for up to n permits goes at once.
//
// # What it takes
//
// 16 bytes for each distinct time at which permits were granted within the last per or
// are promised, their number rounded up to a power of two: n times at most, and n more for each
// per that callers have been promised into the future, which [reserve.WithMaxWait] bounds.
// 100 a minute takes 2 KiB; a million bytes a second, in calls of 1000 each, 16 KiB. The room is
// kept for next time.
//
// A request takes the time of a few binary searches. Only what goes into the middle of a
// queue, or is cancelled there, passes over the times promised after it, and so may the
// first of a size that is new to the queue.
//
// It is the sliding-window log, the leaky bucket that meters, with the times that are
// promised in it as well as those that have passed.
package window

import (
	"math"
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
	rate := reserve.Per(float64(n), per)
	return reserve.NewPolicy(reserve.Variant{Package: "window", Limiter: "a window"}, rate,
		func(int64) reserve.Ledger { return newLedger(n, int64(per), rate) }, nil, opts)
}

// length returns the nanoseconds in which a rate gives n permits: at least 1, but for
// a rate without limit.
func length(n int, permitsPerSecond float64) int64 {
	if math.IsInf(permitsPerSecond, 1) {
		return 0
	}
	ns := math.Round(float64(n) / permitsPerSecond * 1e9)
	if ns >= never {
		return never
	}
	return max(1, int64(ns))
}

// never is the last time that there is.
const never = math.MaxInt64

// add returns a time plus a length that is not negative, saturated.
func add(t, length int64) int64 {
	if t > never-length {
		return never
	}
	return t + length
}
