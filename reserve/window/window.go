// Package window limits to n permits in any stretch of time, exactly: what an API means by "100 requests a minute" is
// [New](100, time.Minute). A token bucket of 100 that refills in a minute lets 199 calls go in its first minute, and a
// counter reset each minute 200 around 12:00:00.
//
// # What is promised
//
// First come, first served. The first waiting request goes as soon as the permits used in the last per leave room for
// it. So any half-open stretch (t-per, t] holds at most n permits that were not given back. With 3 a second and nothing
// used, at 0 s:
//
//	Reserve(2)   ready now
//	Reserve(2)   at 1 s, when the first two have left the window
//	Reserve(1)   at 1 s as well: no request overtakes an earlier one
//	Reserve(1)   at 2 s, since at 1 s there are three
//
// A request waits until all of its permits fit; for more than n it returns a *[reserve.SizeError].
//
// If the program stands still (SIGSTOP, a suspended machine) and a caller wakes more than 1 ms late, that is a pause:
// with 100 each 100 ms and 64 callers due, 100 go right after it and not 164.
//
// # Giving back
//
// Permits that are given back leave the window, and waiting requests move up at once. If the second of the four above
// is cancelled, the third goes at once and the fourth at 1 s. A request settled for more charges the difference behind
// all requests that wait then, even without room.
//
// # When a permit is used
//
// A permit counts from its grant. A server counts the call when it arrives, and calls overtake each other. Package
// outbound therefore lets a permit count until per after the answer. Then no stretch of per at the server holds more
// than n, at the price of one round trip for each per: with 10 a second and 150 ms from sending to answer, 10 go in
// 1.15 s. While a call is out, promised times may become later. Without package outbound, use [WithMargin].
//
// # Changes
//
// Stored is how many permits could be taken now: 0 while a request waits. A pause stops the window's clock.
//
// SetRate keeps n and makes per n/rate seconds. Waiting requests are granted no later than they were promised, and
// earlier if the new window has room. With 3 a second, 3 used at 0 s and a fourth promised for 1 s, SetRate to 3 a
// minute leaves the fourth at 1 s, and the next two wait until 1 minute; with Retime the fourth waits as well. Permits
// that have left the window do not come back into a longer one. SetPolicy changes n and per, as SetRate does. A waiting
// request for more than the new n goes when the window is empty. A promise that SetRate has kept ends when a call of
// package outbound is out.
//
// With a rate of +Inf, per is 0, and nothing waits. A window is no longer than 146 years.
//
// # What it takes
//
// A window takes 24 bytes for the requests granted at one moment, and 40 for a waiting request, rounded up to at most
// twice as much. [reserve.WithMaxWait] bounds the queue. 100,000 waiting requests that give up in random order take 0.3
// s.
package window

import (
	"time"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/variant"

	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
)

var valueError = invalid.In("window")

// New returns a limiter that grants at most n permits in any stretch of per; it starts empty.
//
// It returns a *[reserve.ValueError] if n is less than 1 or per is below a microsecond, and a *[reserve.OptionError]
// for an option other than [WithMargin], [reserve.WithClock], [reserve.WithMaxWait], [reserve.WithName] and
// [reserve.WithSlack].
func New(n int, per time.Duration, opts ...reserve.Option) (*reserve.Limiter, error) {
	p, err := Policy(n, per, opts...)
	if err != nil {
		return nil, err
	}
	return p.Limiter(), nil
}

// Policy returns the policy of New's limiters, for many keys or a shared limiter, with New's errors.
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
	rate, s := float64(n)/per.Seconds(), new(settings)
	length := func() int64 { return min(saturate.Add(int64(per), int64(s.margin)), longest) }
	fresh := func(now int64) *ledger {
		l := newLedger(now, n, length(), rate)
		l.margin = int64(s.margin)
		return l
	}
	return variant.Variant{
		Package: "window", Limiter: "a window", Settings: s,
		Ledger: func(now int64, _ func(int64) time.Time) engine.Ledger { return fresh(now) },
		Load: func(terms, state []byte, then int64, _ func(int64) time.Time) (engine.Ledger, error) {
			l := fresh(then)
			return l, l.load(terms, state)
		},
		// Otherwise callers whose times passed during a stall would all go at once.
		StallIsPause: true,
	}.Policy(rate, opts...)
}

type settings struct{ margin time.Duration }

// WithMargin makes a permit count for d longer than per, for a server that counts calls as they arrive. If the delay
// one way is 30 to 90 ms, a margin of 60 ms keeps every stretch of per at the server within n. Under package outbound
// too, a permit then counts from its grant, which is better where answers take long, as those of language models.
//
// Rate, SetRate and Retime don't count the margin. A negative d is a *[reserve.ValueError]. Default: 0.
func WithMargin(d time.Duration) reserve.Option {
	return variant.Option("WithMargin", func(s *settings) error {
		if d < 0 {
			return valueError("WithMargin", d, "0 or more")
		}
		s.margin = d
		return nil
	})
}
