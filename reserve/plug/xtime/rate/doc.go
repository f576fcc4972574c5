// Package rate has the API of golang.org/x/time/rate, on the limiters of pace. It is for programs that use that
// package, or whose dependencies do. Change the import path. Or swap the package for the whole build with one line in
// the main module's go.mod:
//
//	replace golang.org/x/time => github.com/nextfree/pace/reserve/plug/xtime v0.1.0
//
// # What becomes better
//
//   - Tokens that are given back are used. Cancel works in any order and after the time of the tokens, and the events
//     behind move up. So does WaitN's own giving up: 100 callers that queue at 10/s and give up leave the next one to
//     wait for 0.1 s.
//   - WaitN wakes on time, on Linux typically to within tens of microseconds, where a timer is up to 1 ms late.
//   - Where a deadline is the reason, errors.Is(err, context.DeadlineExceeded) holds. The text is the same.
//   - A time that steps back admits no event twice.
//   - [Limiter.Pace] leads to all that pace has: Settle, Retime, PauseUntil, Snapshot.
//
// # What stays
//
// The limiter is full at the start. More than the burst is refused. As long as nothing is given back, the times are the
// same, to 2 us in random sequences. The zero Limiter allows no events.
//
// # What differs
//
//   - A deferred Cancel gives back what was used: at 10/s a caller whose calls take 50 ms would make 20 a second.
//     Cancel only what was not used. The command pacevet finds these.
//   - ReserveN(t, -n) gives nothing back. Cancel, or Pace and Settle, do that.
//   - SetLimit scales the waits of events that have to wait for what is owed.
//
// With -tags xtimestrict the times are those of golang.org/x/time/rate to the letter: see [Strict].
//
// # Replace
//
// A replace line acts on the whole build, client-go's and Temporal's use of the package too, and in the main module
// alone: libraries can't bring it along, and go install of a module that has one refuses. Workspaces have lines of
// their own in go.work. A program that imports this package under its own path as well has two packages, whose types
// differ.
package rate
