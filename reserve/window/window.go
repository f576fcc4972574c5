// Package window limits to so many permits in any stretch of time, exactly: what an
// API means by "100 requests a minute".
//
// A token bucket of 100 a minute that stores a minute's worth lets 100 calls go at once, and one more every 600 ms.
// These are 199 in its first minute. A counter that is reset each minute lets 100 go at 11:59:59 and 100 more at
// 12:00:00. With a window the 101st call goes a minute after the first, and never before:
//
//	limiter, err := window.New(100, time.Minute)
//
// # What is promised
//
// First come, first served. The first waiting request goes as soon as the permits used in the last per,
// without those given back, leave room for it. So any half-open stretch (t-per, t], wherever it begins,
// holds at most n permits that were not given back. With 3 a second and nothing used, at 0 s:
//
//	Reserve(2)   ready now
//	Reserve(2)   at 1 s, when the first two have left the window
//	Reserve(1)   at 1 s as well: it would fit now, but no request overtakes an earlier one
//	Reserve(1)   at 2 s, since at 1 s there are three
//
// A window has no prepayment and stores nothing beyond itself. A request waits until all of its permits fit,
// and a request for more than n returns a *[reserve.SizeError].
//
// A caller that waits counts at its promised time, and goes within tens of microseconds of that. If the whole program
// stands still (SIGSTOP, a suspended machine) and a caller wakes more than 1 ms late, that counts as a pause. Callers
// whose times have passed go as if time had stood still with them. With 100 each 100 ms, 64 callers due and a stop of 2
// s, 100 go right after it and not 164. Code that sleeps by [reserve.Reservation.At] itself has no such protection.
//
// # Giving back
//
// When a waiting request is cancelled or settled for less, the requests behind it move up. When a granted request is,
// its permits leave the window as if they had not been used, and waiting requests move up at once. If it has left the
// window there is nothing to give back. If the second of the four above is cancelled, the third goes at once and the
// fourth at 1 s. No promised time becomes later (except by a pause or a lower Retime).
//
// If a request is settled for more, the difference queues behind all requests that wait then. When its turn comes it is
// charged, whether there is room for it or not. The window then holds more than n, and no request goes until there is
// room again. With 10 a second and 6 used, Settle(9) leaves room for one, and Settle(16) for none until a second later.
//
// # When a permit is used
//
// A permit counts from when it is granted. A server counts the call later, when it arrives, and a call may overtake
// another on the way. So a window that is exactly the server's is exceeded there by some calls. A caller who knows when
// the use of permits is over says so, by [reserve.Reservation.Begin] and End. They then count without end until End, and
// for per after it: whatever the network does, no stretch of per at the server holds more than n. That takes one round
// trip for each per. With 10 a second and 150 ms from sending to answer, 10 go in 1.15 s. Until End promised times may
// become later. See also [WithMargin].
//
// # Changes
//
// Stored is how many permits could be taken now: 0 while a request waits. A pause stops the window's clock:
// permits used before it leave the window later by as much.
//
// SetRate keeps n, and makes per n/rate seconds, to the nanosecond: with 100 a minute, SetRate(reserve.Per(100,
// time.Hour)) makes it 100 an hour. It applies to requests from then on. Waiting requests keep the window by which they
// were promised their time. Take 3 a second, 3 used at 0 s and a fourth promised for 1 s. SetRate to 3 a minute leaves
// the fourth at 1 s. The next two wait until 1 minute, and one behind them until 1 minute and 1 s. Permits that have
// left the present window do not come back into a longer one.
//
// Retime changes the window of waiting requests too: in the example the fourth then waits until 1 minute. SetPolicy
// changes n and per, as SetRate does. A waiting request for more than the new n keeps its time. After a Retime it goes
// when the window is empty.
//
// With a rate of +Inf, per is 0, and each request for up to n permits is granted as soon as the requests before it are.
// A window is no longer than 146 years.
//
// # What it takes
//
// A window takes 32 bytes for each request that waits or was granted within the last per, rounded up to a power of two.
// Requests granted at one moment count as one, and requests that were given back are removed when they are more than
// half. So without a queue there are at most n requests, and one for each charge; [reserve.WithMaxWait] bounds the
// queue. 100 a minute takes 4 KiB; a million bytes a second, in calls of 1000 each, 32 KiB. The memory is kept for next
// time.
//
// A request takes a few nanoseconds when it is made and when it is granted, whatever the window holds. When permits are
// given back, the times of the requests behind are computed again once they are needed, in one pass, a few nanoseconds
// each. A waiting caller needs that of the first one, a new request all of them. So 100,000 waiting requests that give
// up in random order take 0.1 s. But 10,000 whose At is asked before each gives up take 0.15 s. A refused request and
// [reserve.Limiter.NextFree] pass over the requests that they would have to wait for.
//
// It is a sliding-window log that holds waiting requests as well as granted ones.
package window

import (
	"time"

	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
)

// valueError makes the error for a bad value.
var valueError = invalid.In("window")

// New returns a limiter that grants at most n permits in any stretch of per: New(100, time.Minute) for 100 a
// minute. It starts empty.
//
// It returns a *[reserve.ValueError] if n is less than 1 or per is below a microsecond, and a *[reserve.OptionError] for
// an option that does not apply. [WithMargin], [reserve.WithClock], [reserve.WithMaxWait] and [reserve.WithSlack] do.
func New(n int, per time.Duration, opts ...reserve.Option) (*reserve.Limiter, error) {
	p, err := Policy(n, per, opts...)
	if err != nil {
		return nil, err
	}
	return p.Limiter(), nil
}

// Policy returns the policy for such limiters, to use for many keys or for a shared limiter. Its errors
// are New's.
func Policy(n int, per time.Duration, opts ...reserve.Option) (*reserve.Policy, error) {
	if n < 1 {
		return nil, valueError("n", n, "at least 1 permit")
	}
	if per < time.Microsecond { // as of New(100, 60), which means 60 ns
		return nil, valueError("per", per, "at least a microsecond, as in 60*time.Second")
	}
	return newPolicy(n, per, opts...)
}

func newPolicy(n int, per time.Duration, opts ...reserve.Option) (*reserve.Policy, error) {
	rate, s := reserve.Per(float64(n), per), new(settings)
	length := func() int64 { return min(saturate.Add(int64(per), int64(s.margin)), longest) }
	fresh := func(now int64) *ledger {
		l := newLedger(now, n, length(), rate)
		l.margin = int64(s.margin)
		return l
	}
	return reserve.NewPolicy(reserve.Variant{
		Package: "window", Limiter: "a window", Settings: s,
		Ledger: func(now int64, _ func(int64) time.Time) reserve.Ledger { return fresh(now) },
		Change: func(now int64, of reserve.Ledger) {
			l := of.(*ledger)
			l.change(now, n, length(), rate)
			l.margin = int64(s.margin)
		},
		Load: func(state []byte, then int64, _ func(int64) time.Time) (reserve.Ledger, error) {
			l := fresh(then)
			return l, l.load(state)
		},
		// Otherwise callers whose times passed during a stall would go at once, after they have left the window.
		StallIsPause: true,
	}, rate, opts...)
}

// settings are what the options of a window say.
type settings struct{ margin time.Duration }

// WithMargin makes a permit count for d longer than per: for another side that counts calls as they arrive, when some
// take longer than others on their way. If the delay between two machines is 30 to 90 ms, one way, a margin of 60 ms
// keeps every stretch of per at the other side within n, at the price of n permits in each per + 60 ms. Where the answer
// to a call is seen, [reserve.Reservation.Begin] needs no margin to be known, and package outbound calls it.
//
// A window with a margin does nothing at Begin and End: the margin stands for the flight. It is the better choice where
// answers take long and the server counts a call when it arrives, as language models do.
//
// Rate, SetRate and Retime don't count the margin. A negative d is a *[reserve.ValueError]. Default: 0.
func WithMargin(d time.Duration) reserve.Option {
	return reserve.NewOption("WithMargin", func(s *settings) error {
		if d < 0 {
			return valueError("WithMargin", d, "0 or more")
		}
		s.margin = d
		return nil
	})
}
